// Gathers and scatters with masks of their own. It says which elements are accessed; nothing else
// accesses the table but by blocks. Without such a processor it says nothing.
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char __executable_start, etext;
#define LEN 3000
static int *table, out[16];
static char *text, *at;

static void expect(char kind, long offset, int size) {
    at += sprintf(at, "expect %d %ld %d\n", kind, offset, size);
}

__attribute__((target("avx512f,avx512vl"))) static void run(void) {
    for (int i = 0; i < 30; i++) {
        int indices[16];
        long long longs[8];
        for (int k = 0; k < 16; k++)
            indices[k] = (i * 97 + k * k * 31) % LEN - 100;
        for (int k = 0; k < 8; k++)
            longs[k] = (i * 13 + k * 181) % (LEN / 2);
        unsigned mask = i * 2654435761u >> 7;
        __m512i index = _mm512_loadu_si512(indices), index8 = _mm512_loadu_si512(longs);
        __m512i got = _mm512_mask_i32gather_epi32(index, mask, index, table + 100, 4);
        for (int k = 0; k < 16; k++)
            if (mask >> k & 1)
                expect('L', 4l * (100 + indices[k]), 4);
        _mm512_mask_i32scatter_epi32(table + 100, mask >> 3, index, got, 4);
        for (int k = 0; k < 16; k++)
            if (mask >> 3 >> k & 1)
                expect('S', 4l * (100 + indices[k]), 4);
        _mm512_mask_i64scatter_epi64(table, mask >> 5, index8, got, 8);
        for (int k = 0; k < 8; k++)
            if (mask >> 5 >> k & 1)
                expect('S', 8l * longs[k], 8);
        __m256i half = _mm512_mask_i64gather_epi32(_mm256_setzero_si256(), mask, index8, table, 4);
        for (int k = 0; k < 8; k++)
            if (mask >> k & 1)
                expect('L', 4l * longs[k], 4);
        _mm256_storeu_si256((__m256i *)out, half);
    }
}

int main(void) {
    int *numbers = malloc(LEN * sizeof *numbers);
    table = aligned_alloc(4096, LEN * sizeof *table);
    at = text = malloc(1 << 18);
    *text = 0;
    for (int i = 0; i < LEN; i++)
        numbers[i] = i * 3;
    volatile size_t len = LEN * sizeof *table;
    memcpy(table, numbers, len);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        run();
    fputs(text, stdout);
    printf("text %lu %lu\n", (unsigned long)&__executable_start, (unsigned long)&etext);
    printf("chunk %lu %lu\n", (unsigned long)table, LEN * sizeof *table);
    printf("result %d\n", out[3]);
    return 0;
}
