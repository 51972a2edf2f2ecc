// Sorts numbers in a chunk of the heap. Says where the chunk is, what came out, and how much
// processor time that took.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// Those of madt.c, if it is preloaded.
__attribute__((weak)) void madt_start(void *memory, size_t bytes);
__attribute__((weak)) void madt_stop(void);

static void sort(unsigned *all, long len) {
    while (len > 1) {
        unsigned middle = all[len / 2];
        long low = 0, high = len - 1;
        for (;; low++, high--) {
            while (all[low] < middle)
                low++;
            while (all[high] > middle)
                high--;
            if (low >= high)
                break;
            unsigned one = all[low];
            all[low] = all[high];
            all[high] = one;
        }
        // The smaller part by a call, so that the stack stays small.
        if (low < len - low) {
            sort(all, low);
            all += low, len -= low;
        } else {
            sort(all + low, len - low);
            len = low;
        }
    }
}

static unsigned long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000ul + time.tv_nsec;
}

int main(int argc, char **argv) {
    long len = argc > 1 ? atol(argv[1]) : 1000;
    unsigned seed = 1, *all = malloc(len * sizeof *all);
    if (madt_start)
        madt_start(all, len * sizeof *all);
    unsigned long before = now();
    for (long at = 0; at < len; at++)
        all[at] = seed = seed * 1664525 + 1013904223;
    sort(all, len);
    unsigned long sum = 0;
    for (long at = 0; at < len; at++)
        sum = sum * 31 + all[at];
    unsigned long after = now();
    if (madt_stop)
        madt_stop();
    printf("%lu %lu %lu %lu\n", (unsigned long)all, len * sizeof *all, sum, after - before);
    return 0;
}
