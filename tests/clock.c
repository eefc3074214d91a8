/* The wall clock, shifted by the whole seconds that stand in the file CLOCK_SHIFT; every other clock is left alone.
   Preloaded by tests/faults.py: libfaketime shifts the monotonic clock's sleeps too, and Python's then fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long shift_s(void)
{
    char text[32] = {0};
    const char *path = getenv("CLOCK_SHIFT");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        ssize_t got = read(file, text, sizeof text - 1);
        close(file);
        if (got < 0)
            return 0;
    }
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, now);
    if (code == 0 && clock == CLOCK_REALTIME)
        now->tv_sec += shift_s();
    return code;
}
