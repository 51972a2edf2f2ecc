// Threads that each work on memory of their own, and share some.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

extern char __executable_start, etext;
#define THREADS 4
#define LEN 500
static int *own[THREADS];
static int table[THREADS][LEN];
static long sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *which) {
    long at = (long)which;
    int *mine = own[at];
    for (int i = 0; i < LEN; i++)
        mine[i] = i * (int)at;
    for (int i = 1; i < LEN; i++)
        table[at][i] = mine[i] + mine[i - 1];
    pthread_mutex_lock(&lock);
    sum += table[at][LEN - 1];
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        own[i] = malloc(LEN * sizeof(int));
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("text %lu %lu\n", (unsigned long)&__executable_start, (unsigned long)&etext);
    for (int i = 0; i < THREADS; i++) {
        printf("chunk %lu %lu\n", (unsigned long)own[i], LEN * sizeof(int));
        printf("chunk %lu %lu\n", (unsigned long)table[i], sizeof table[i]);
    }
    printf("result %ld\n", sum);
    return 0;
}
