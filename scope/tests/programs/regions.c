#include <stdio.h>
#include <stdlib.h>

enum { LEN = 4096 };

__attribute__((noinline)) static long sum(const long *numbers, int from, int to) {
    long total = 0;
    for (int i = from; i < to; i++) total += numbers[i];
    return total;
}

__attribute__((noinline)) static long halves(const long *numbers, int from, int to) {
    if (to - from <= 512) return sum(numbers, from, to);
    int middle = (from + to) / 2;
    long left = halves(numbers, from, middle);
    return left + halves(numbers, middle, to);
}

__attribute__((noinline)) static long local(long seed) {
    volatile long array[512];
    for (int i = 0; i < 512; i++) array[i] = seed;
    return array[seed & 511];
}

int main(void) {
    long *numbers = malloc(LEN * sizeof *numbers);
    for (int i = 0; i < LEN; i++) numbers[i] = i;
    long total = halves(numbers, 0, LEN) + sum(numbers, 0, 10);
    free(numbers);
    total += local(total) - total;
    printf("%ld\n", total);
    return 0;
}
