// Gathers of each kind, with masks, over pages.
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char __executable_start, etext;
#define LEN 4000

int main(void) {
    int *table = aligned_alloc(4096, LEN * sizeof *table);
    for (int i = 0; i < LEN; i++)
        table[i] = i * 3;
    __m256i sum = _mm256_setzero_si256();
    for (int i = 0; i < 50; i++) {
        __m256i near = _mm256_setr_epi32(i, i + 9, i + 2, 70, i, 3, 1, i * 2);
        __m256i far = _mm256_mullo_epi32(near, _mm256_set1_epi32(25));
        __m256i some = _mm256_cmpgt_epi32(near, _mm256_set1_epi32(30));
        __m128i few = _mm256_castsi256_si128(near), longs = _mm_set_epi64x(i * 7, 1999 - i);
        sum = _mm256_add_epi32(sum, _mm256_i32gather_epi32(table, near, 4));
        sum = _mm256_add_epi32(sum, _mm256_i32gather_epi32(table + 500, far, 4));
        sum = _mm256_add_epi32(sum, _mm256_mask_i32gather_epi32(sum, table, far, some, 4));
        sum = _mm256_add_epi32(sum, _mm256_i32gather_epi64((long long *)table, few, 8));
        sum = _mm256_add_epi32(sum, _mm256_castsi128_si256(_mm_i64gather_epi32(table, longs, 4)));
        sum = _mm256_add_epi32(
            sum, _mm256_castsi128_si256(_mm_i64gather_epi64((long long *)table, longs, 8)));
    }
    int out[8];
    _mm256_storeu_si256((__m256i *)out, sum);
    printf("text %lu %lu\n", (unsigned long)&__executable_start, (unsigned long)&etext);
    printf("chunk %lu %lu\n", (unsigned long)table, LEN * sizeof *table);
    printf("result %u %u\n", out[1], out[6]);
    return 0;
}
