// Vectors of 32 bytes, also across lines and pages.
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>

extern char __executable_start, etext;
#define LEN 2000

int main(void) {
    float *a = malloc(LEN * sizeof(float)), *b = malloc(LEN * sizeof(float));
    for (int i = 0; i < LEN; i++) {
        a[i] = i;
        b[i] = 2 * i;
    }
    __m256 sum = _mm256_setzero_ps();
    for (int i = 0; i + 8 <= LEN - 1; i += 8) {
        __m256 product = _mm256_mul_ps(_mm256_loadu_ps(a + i + 1), _mm256_loadu_ps(b + i));
        _mm256_storeu_ps(b + i, product);
        sum = _mm256_add_ps(sum, product);
    }
    float out[8];
    _mm256_storeu_ps(out, sum);
    printf("text %lu %lu\n", (unsigned long)&__executable_start, (unsigned long)&etext);
    printf("chunk %lu %lu\n", (unsigned long)a, LEN * sizeof(float));
    printf("chunk %lu %lu\n", (unsigned long)b, LEN * sizeof(float));
    printf("result %d\n", (int) out[3]);
    return 0;
}
