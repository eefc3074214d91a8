/* Read-only streaming over all threads, STREAM's way: each thread sums its own slice, best of some rounds.
   Usage: read THREADS BYTES ROUNDS; prints the rate of every round [B/s], one a line.
   Unlike STREAM's four kernels nothing is written: decode reads its weights and writes next to nothing. */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { PASSES = 8 };
static size_t words;
static int rounds;
static int crowd, waiting, phase; /* a barrier: macOS has none of its own */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static volatile uint64_t sink;

static void meet(void) {
    pthread_mutex_lock(&lock);
    int mine = phase;
    if (++waiting == crowd) {
        waiting = 0;
        phase++;
        pthread_cond_broadcast(&turned);
    } else {
        while (mine == phase) pthread_cond_wait(&turned, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void *reader(void *unused) {
    (void) unused;
    void *memory;
    if (posix_memalign(&memory, 1 << 21, words * sizeof(uint64_t))) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
#ifdef MADV_HUGEPAGE
    madvise(memory, words * sizeof(uint64_t), MADV_HUGEPAGE); /* as numpy asks for its arrays */
#endif
    uint64_t *slice = memory;
    for (size_t i = 0; i < words; i++) slice[i] = i; /* touched by the thread that reads it */
    uint64_t sum[8] = {0}; /* independent sums: the loop waits for memory, not for its own adds */
    for (int r = 0; r < rounds; r++) {
        meet();
        for (int p = 0; p < PASSES; p++) {
            for (size_t i = 0; i + 8 <= words; i += 8)
                for (int k = 0; k < 8; k++) sum[k] += slice[i + k];
            __asm__ volatile("" : : : "memory"); /* else the passes could be folded into one */
        }
        meet();
    }
    for (int k = 0; k < 8; k++) sink += sum[k];
    free(slice);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int threads = atoi(argv[1]);
    words = strtoull(argv[2], NULL, 10) / threads / sizeof(uint64_t);
    rounds = atoi(argv[3]) + 1;
    pthread_t *all = malloc(threads * sizeof *all);
    crowd = threads + 1;
    for (int t = 0; t < threads; t++) pthread_create(&all[t], NULL, reader, NULL);
    for (int r = 0; r < rounds; r++) {
        meet();
        double start_s = now_s();
        meet();
        double elapsed_s = now_s() - start_s;
        if (r > 0) printf("%.6e\n", (double) PASSES * words * sizeof(uint64_t) * threads / elapsed_s); /* the first warms up */
    }
    for (int t = 0; t < threads; t++) pthread_join(all[t], NULL);
    return 0;
}
