// Sorts memory of each kind; string instructions and atomics, too. Says where all of it lies.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

extern char __executable_start, etext;
#define LEN 300
static unsigned data[LEN] = {3, 1, 2};
static unsigned bss[LEN];
static _Atomic unsigned long counter[2];

static void sort(unsigned *all, int len) {
    for (int i = 1; i < len; i++) {
        unsigned one = all[i];
        int at = i;
        for (; at > 0 && all[at - 1] > one; at--)
            all[at] = all[at - 1];
        all[at] = one;
    }
}

int main(void) {
    unsigned *heap = malloc(sizeof data), *large = malloc(1 << 20);
    unsigned seed = 1;
    unsigned *all[] = {data, bss, heap, large};
    for (int kind = 0; kind < 4; kind++) {
        for (int i = 0; i < LEN; i++)
            all[kind][i] = seed = seed * 1664525 + 1013904223;
        sort(all[kind], LEN);
    }
    atomic_fetch_add(&counter[0], 5);
    unsigned long expected = 5;
    atomic_compare_exchange_strong(&counter[0], &expected, 6);
    // String instructions over the border of pages.
    char *to = (char *)large + 4000, *from = (char *)heap;
    long count = 200;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    count = 30;
    __asm__ volatile("rep stosq" : "+D"(to), "+c"(count) : "a"(7L) : "memory");
    char *left = (char *)large + 4000, *right = (char *)heap;
    count = 300;
    __asm__ volatile("repe cmpsb" : "+D"(left), "+S"(right), "+c"(count) : : "memory", "cc");
    printf("text %lu %lu\n", (unsigned long)&__executable_start, (unsigned long)&etext);
    printf("chunk %lu %lu\n", (unsigned long)data, sizeof data);
    printf("chunk %lu %lu\n", (unsigned long)bss, sizeof bss);
    printf("chunk %lu %lu\n", (unsigned long)heap, sizeof data);
    printf("chunk %lu %d\n", (unsigned long)large, 1 << 20);
    printf("result %u %ld %ld\n", data[7], count, (long)counter[0]);
    return 0;
}
