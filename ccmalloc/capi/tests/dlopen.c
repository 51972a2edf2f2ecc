/* Opens libccmalloc.so (the argument) after start, uses what dlsym gives from threads older and younger than that, and closes it. With the library
 * preloaded as well, both names lead to the same allocator. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(holds)                                                   \
    do {                                                                 \
        if (!(holds)) {                                                  \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #holds); \
            exit(1);                                                     \
        }                                                                \
    } while (0)

#define THREADS 4
#define OBJECTS 20000

static void *(*near_malloc)(size_t, const void *);
static void *(*their_malloc)(size_t);
static void *(*their_calloc)(size_t, size_t);
static void *(*their_realloc)(void *, size_t);
static void (*their_free)(void *);
static int (*contains)(const void *);
static pthread_barrier_t opened;

struct node {
    struct node *next;
    uint64_t number;
};

static void *work(void *seed) {
    struct node *list = NULL;
    uint64_t i, same_block = 0;
    char *text = their_malloc(10);
    for (i = 0; i < OBJECTS; i++) {
        struct node *node = near_malloc(sizeof *node, list ? (void *)list : (void *)&list);
        REQUIRE(node && contains(node));
        same_block += list && (uintptr_t)node / 64 == (uintptr_t)list / 64;
        node->next = list;
        node->number = i + (uintptr_t)seed;
        list = node;
        if (i % 100 == 0) {
            size_t *cleared = their_calloc(i + 1, sizeof *cleared);
            REQUIRE(cleared && cleared[0] == 0 && cleared[i] == 0 && contains(cleared));
            their_free(cleared);
            text = their_realloc(text, 10 + i * 3);
            memset(text, 'x', 10 + i * 3);
        }
    }
    REQUIRE(same_block > OBJECTS / 2);
    their_free(text);
    while (list) {
        struct node *node = list;
        REQUIRE(node->number == --i + (uintptr_t)seed);
        list = node->next;
        their_free(node);
    }
    return NULL;
}

static void *wait_and_work(void *seed) {
    pthread_barrier_wait(&opened);
    return work(seed);
}

/* An object pointer as a function pointer, the way POSIX has it. */
static void find(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    REQUIRE(symbol);
    memcpy(function, &symbol, sizeof symbol);
}

int main(int argc, char **argv) {
    pthread_t older[THREADS], younger[THREADS];
    void *library;
    char *object;
    uintptr_t i;
    REQUIRE(argc == 2);
    REQUIRE(pthread_barrier_init(&opened, NULL, THREADS + 1) == 0);
    for (i = 0; i < THREADS; i++) REQUIRE(pthread_create(&older[i], NULL, wait_and_work, (void *)i) == 0);
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    find(library, "ccmalloc", &near_malloc);
    find(library, "ccmalloc_contains", &contains);
    find(library, "malloc", &their_malloc);
    find(library, "calloc", &their_calloc);
    find(library, "realloc", &their_realloc);
    find(library, "free", &their_free);
    pthread_barrier_wait(&opened);
    /* A library with thread-local variables of its own comes in between. */
    (void)dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    for (i = 0; i < THREADS; i++) REQUIRE(pthread_create(&younger[i], NULL, work, (void *)(100 + i)) == 0);
    work((void *)(uintptr_t)200);
    for (i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(older[i], NULL) == 0);
        REQUIRE(pthread_join(younger[i], NULL) == 0);
    }
    object = their_malloc(100);
    strcpy(object, "outlives");
    REQUIRE(dlclose(library) == 0);
    REQUIRE(strcmp(object, "outlives") == 0 && contains(object));
    their_free(object);
    printf("dlopen: as it should be\n");
    return 0;
}
