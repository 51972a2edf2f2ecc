/* The sort of sort.rs, for compilers of C and of C++. */
#include <stdint.h>
#include <stdlib.h>

#define LEN 20000

/* Functions of their own: gcc may count two accesses to an address in a row once. */
__attribute__((noinline)) static uint32_t load(volatile uint32_t *array, size_t at) {
    return array[at];
}

__attribute__((noinline)) static void store(volatile uint32_t *array, size_t at, uint32_t value) {
    array[at] = value;
}

static void sort(volatile uint32_t *array, size_t low, size_t high) {
    uint32_t pivot = load(array, low + (high - low) / 2);
    size_t i = low, j = high;
    for (;;) {
        uint32_t left = load(array, i);
        while (left < pivot)
            left = load(array, ++i);
        uint32_t right = load(array, j);
        while (right > pivot)
            right = load(array, --j);
        if (i >= j)
            break;
        store(array, i++, right);
        store(array, j--, left);
    }
    if (low < j)
        sort(array, low, j);
    if (j + 1 < high)
        sort(array, j + 1, high);
}

/* Alive at the end, so that the capture has it as a chunk of its own. */
static volatile uint32_t *kept;

int main(void) {
    uint64_t state = 1;
    kept = (volatile uint32_t *)calloc(LEN, sizeof *kept);
    for (size_t at = 0; at < LEN; at++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        store(kept, at, (uint32_t)(state >> 33));
    }
    sort(kept, 0, LEN - 1);
    return 0;
}
