/* Threads that hand objects over. Run with the library preloaded: each argument names a case.
 * Each object carries its number and its size from its allocation to its free, so that memory that
 * two objects share is found; resident memory is compared with what is live. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "status.h"

enum { THREADS = 4, BATCH = 1000, BOXES = 4, ROUNDS = 300, SLOTS = 4000 };

struct object {
    uint32_t bytes, number;
    /* `bytes` in all; the last four are `number` again. */
};

static struct object *make(size_t bytes, uint32_t number) {
    struct object *object = malloc(bytes);
    if (!object) exit(2);
    object->bytes = (uint32_t)bytes;
    object->number = number;
    memcpy((char *)object + bytes - 4, &number, 4);
    return object;
}

static void end(struct object *object) {
    uint32_t number;
    memcpy(&number, (char *)object + object->bytes - 4, 4);
    if (number != object->number) exit(3);
    object->number = ~number;
    free(object);
}

static size_t next_bytes(unsigned *state) {
    *state = *state * 1103515245 + 12345;
    return 16 + (*state >> 16) % 240;
}

static void require_at_most(const char *what, size_t is, size_t most) {
    printf("%s: %zu MiB resident at the most, %zu allowed\n", what, is / MIB, most / MIB);
    if (is > most) exit(1);
}

/* A queue of one producer and one consumer, a few batches long. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct object *objects[BOXES][BATCH];
    size_t made, taken;
} queues[THREADS];

static void run(void *(*work)(void *), size_t threads) {
    pthread_t started[THREADS + 1];
    size_t i;
    for (i = 0; i < threads; i++)
        if (pthread_create(&started[i], NULL, work, (void *)i)) exit(4);
    for (i = 0; i < threads; i++) pthread_join(started[i], NULL);
}

static void put_batch(size_t queue, unsigned *state) {
    size_t i;
    pthread_mutex_lock(&queues[queue].mutex);
    while (queues[queue].made == queues[queue].taken + BOXES)
        pthread_cond_wait(&queues[queue].changed, &queues[queue].mutex);
    pthread_mutex_unlock(&queues[queue].mutex);
    for (i = 0; i < BATCH; i++)
        queues[queue].objects[queues[queue].made % BOXES][i] = make(next_bytes(state), *state);
    pthread_mutex_lock(&queues[queue].mutex);
    queues[queue].made++;
    pthread_cond_signal(&queues[queue].changed);
    pthread_mutex_unlock(&queues[queue].mutex);
}

static void end_batch(size_t queue) {
    size_t i;
    pthread_mutex_lock(&queues[queue].mutex);
    while (queues[queue].made == queues[queue].taken)
        pthread_cond_wait(&queues[queue].changed, &queues[queue].mutex);
    pthread_mutex_unlock(&queues[queue].mutex);
    for (i = 0; i < BATCH; i++) end(queues[queue].objects[queues[queue].taken % BOXES][i]);
    pthread_mutex_lock(&queues[queue].mutex);
    queues[queue].taken++;
    pthread_cond_signal(&queues[queue].changed);
    pthread_mutex_unlock(&queues[queue].mutex);
}

static void *own_work(void *argument) {
    static struct object *objects[THREADS][BATCH];
    struct object **mine = objects[(size_t)argument];
    unsigned state = (unsigned)(size_t)argument;
    size_t round, i;
    for (round = 0; round < ROUNDS; round++) {
        for (i = 0; i < BATCH; i++) mine[i] = make(next_bytes(&state), state);
        for (i = 0; i < BATCH; i++) end(mine[i]);
    }
    return NULL;
}

/* Each thread frees what it has made. */
static void own(void) {
    run(own_work, THREADS);
    require_at_most("own", status("VmHWM"), 16 * MIB);
}

static void *ring_work(void *argument) {
    size_t me = (size_t)argument, round;
    unsigned state = (unsigned)me;
    for (round = 0; round < ROUNDS; round++) {
        put_batch(me, &state);
        end_batch((me + 1) % THREADS);
    }
    return NULL;
}

/* Each thread frees what its neighbour has made. */
static void ring(void) {
    run(ring_work, THREADS);
    require_at_most("ring", status("VmHWM"), 24 * MIB);
}

static void *one_frees_work(void *argument) {
    size_t me = (size_t)argument, round, queue;
    unsigned state = (unsigned)me;
    for (round = 0; round < ROUNDS; round++)
        if (me < THREADS)
            put_batch(me, &state);
        else
            for (queue = 0; queue < THREADS; queue++) end_batch(queue);
    return NULL;
}

/* One thread frees what all others have made. */
static void one_frees(void) {
    run(one_frees_work, THREADS + 1);
    require_at_most("one_frees", status("VmHWM"), 24 * MIB);
}

static struct object *slots[THREADS][SLOTS];

static void *generation_work(void *argument) {
    struct object **mine = slots[(size_t)argument];
    unsigned state = (unsigned)(size_t)argument + 7;
    size_t step;
    for (step = 0; step < SLOTS * 5; step++) {
        size_t bytes = next_bytes(&state), slot = (state >> 8) % SLOTS;
        if (mine[slot]) end(mine[slot]);
        mine[slot] = make(bytes, state);
    }
    return NULL;
}

/* Threads replace objects that threads before them have left, and end in their turn. */
static void generations(void) {
    size_t round, i;
    for (round = 0; round < 40; round++) {
        struct object *first[SLOTS];
        run(generation_work, THREADS);
        memcpy(first, slots[0], sizeof first);
        memmove(slots[0], slots[1], sizeof slots - sizeof first);
        memcpy(slots[THREADS - 1], first, sizeof first);
    }
    for (round = 0; round < THREADS; round++)
        for (i = 0; i < SLOTS; i++)
            if (slots[round][i]) end(slots[round][i]);
    require_at_most("generations", status("VmHWM"), THREADS * SLOTS * 160 * 3 / 2 + 16 * MIB);
    require_at_most("generations, at the end", status("VmRSS"), 24 * MIB);
}

enum { MANY = 16, LIVE = 10000, HANDED = 1024 };
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t room;
    struct object *objects[HANDED];
    size_t count;
    int ended;
} handed[MANY];

static void *produce(void *argument) {
    size_t me = (size_t)argument, i;
    struct object **live = calloc(LIVE, sizeof *live);
    unsigned state = (unsigned)me * 7 + 1;
    for (i = 0; i < LIVE; i++) live[i] = make(592, (uint32_t)i);
    for (i = 0; i < LIVE * 4; i++) {
        size_t slot;
        state = state * 1103515245 + 12345;
        slot = (state >> 8) % LIVE;
        pthread_mutex_lock(&handed[me].mutex);
        while (handed[me].count == HANDED)
            pthread_cond_wait(&handed[me].room, &handed[me].mutex);
        handed[me].objects[handed[me].count++] = live[slot];
        pthread_mutex_unlock(&handed[me].mutex);
        live[slot] = make(592, state);
    }
    pthread_mutex_lock(&handed[me].mutex);
    handed[me].ended = 1;
    pthread_mutex_unlock(&handed[me].mutex);
    return live;
}

static void *consume(void *argument) {
    size_t i, count, queue, ended = 0;
    while (ended < MANY) {
        ended = 0;
        for (queue = 0; queue < MANY; queue++) {
            struct object *taken[HANDED];
            pthread_mutex_lock(&handed[queue].mutex);
            count = handed[queue].count;
            memcpy(taken, handed[queue].objects, count * sizeof *taken);
            handed[queue].count = 0;
            ended += handed[queue].ended && count == 0;
            pthread_cond_signal(&handed[queue].room);
            pthread_mutex_unlock(&handed[queue].mutex);
            for (i = 0; i < count; i++) end(taken[i]);
        }
    }
    return argument;
}

/* Many threads replace their objects, and one frees what they replace: it does not pile up. */
static void replacing(void) {
    pthread_t producers[MANY], consumer;
    size_t i, k;
    void *live;
    for (i = 0; i < MANY; i++) pthread_create(&producers[i], NULL, produce, (void *)i);
    pthread_create(&consumer, NULL, consume, NULL);
    pthread_join(consumer, NULL);
    require_at_most("replacing", status("VmHWM"), (size_t)MANY * LIVE * 640 * 14 / 10 + 16 * MIB);
    for (i = 0; i < MANY; i++) {
        pthread_join(producers[i], &live);
        for (k = 0; k < LIVE; k++) end(((struct object **)live)[k]);
        free(live);
    }
    require_at_most("replacing, at the end", status("VmRSS"), 40 * MIB);
}

int main(int count, char **arguments) {
    static const struct { const char *name; void (*run)(void); } cases[] = {
        {"own", own}, {"ring", ring}, {"one_frees", one_frees}, {"generations", generations},
        {"replacing", replacing},
    };
    size_t i;
    for (i = 0; i < THREADS; i++) {
        pthread_mutex_init(&queues[i].mutex, NULL);
        pthread_cond_init(&queues[i].changed, NULL);
    }
    for (i = 0; i < MANY; i++) {
        pthread_mutex_init(&handed[i].mutex, NULL);
        pthread_cond_init(&handed[i].room, NULL);
    }
    for (i = 0; count == 2 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(arguments[1], cases[i].name) == 0) return cases[i].run(), 0;
    return 64;
}
