/* Programs that run while somebody attaches to them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

static char line[64];

/* Says that it is ready, and waits for a line on its input. */
static void wait_for_line(const char *word) {
    write(1, word, strlen(word));
    write(1, "\n", 1);
    for (size_t len = 0; read(0, line + len, 1) == 1 && line[len] != '\n'; len++) {}
}

__attribute__((noinline)) static void *leak(size_t size) {
    void *volatile chunk = malloc(size);
    memset(chunk, 1, size);
    return chunk;
}

static void *kept[1000];

/* Calls that are bound after somebody has attached, and those of a library that is loaded then. */
static int bound_late(const char *library) {
    void *(*found)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "malloc");
    void *loaded = dlopen(library, RTLD_NOW);
    void *(*make)(void) = loaded ? (void *(*)(void))dlsym(loaded, "make") : 0;
    if (!found || !make) return 1;
    for (int i = 0; i < 10; i++) found(77);
    for (int i = 0; i < 20; i++) make();
    return 0;
}

/* Whether a child process works: it is not recorded. */
static int forks(void) {
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 1000; i++) free(malloc(i));
        free(kept[999]);
        _exit(0);
    }
    return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

/* 1000 chunks before, of which 300 are freed and 100 grow after; 830 chunks after, and 50. */
static int exact(const char *library) {
    for (int i = 0; i < 1000; i++) kept[i] = leak(40);
    errno = 77;
    wait_for_line("ready");
    if (errno != 77) return 1;
    for (int i = 0; i < 300; i++) free(kept[i]);
    for (int i = 300; i < 400; i++) kept[i] = realloc(kept[i], 4000);
    for (int i = 0; i < 500; i++) free(strdup("a text of 24 characters"));
    for (int i = 0; i < 250; i++) leak(123);
    if (library && bound_late(library)) return 1;
    if (forks()) return 1;
    wait_for_line("first");
    for (int i = 0; i < 50; i++) leak(123);
    wait_for_line("second");
    return 0;
}

static volatile int is_over;
static volatile unsigned long long rounds;

static void *churn(void *number) {
    void *chunks[64] = {0};
    unsigned seed = (unsigned)(size_t)number;
    while (!is_over) {
        seed = seed * 1103515245 + 12345;
        void **chunk = &chunks[seed / 65536 % 64];
        if (seed & 4096) {
            free(*chunk);
            *chunk = malloc(16 + seed % 500);
            memset(*chunk, 7, 16);
        } else {
            *chunk = realloc(*chunk, 16 + seed % 700);
            if (*(unsigned char *)*chunk == 8) abort();
        }
        rounds++;
    }
    for (int i = 0; i < 64; i++) free(chunks[i]);
    return 0;
}

static void *short_lived(void *nothing) {
    free(malloc(100));
    return nothing;
}

static void *starts_threads(void *nothing) {
    while (!is_over) {
        pthread_t thread;
        if (pthread_create(&thread, 0, short_lived, 0) == 0) pthread_join(thread, 0);
    }
    return nothing;
}

/* Threads that are never at rest, others that come and go, libraries that are loaded. */
static int busy(void) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS + 1];
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, churn, (void *)(i + 1));
    pthread_create(&threads[THREADS], 0, starts_threads, 0);
    wait_for_line("ready");
    is_over = 1;
    for (int i = 0; i <= THREADS; i++) pthread_join(threads[i], 0);
    wait_for_line(rounds > 1000 ? "worked" : "idle");
    return 0;
}

/* One thread, which never calls the kernel. */
static void end(int signal) {
    (void)signal;
    is_over = 1;
}

static int alone(void) {
    signal(SIGTERM, end);
    write(1, "ready\n", 6);
    churn((void *)1);
    return 0;
}

/* Waits by a call that fails when a signal comes. */
static int waits(void) {
    struct epoll_event event = {.events = EPOLLIN};
    int events = epoll_create1(0);
    if (epoll_ctl(events, EPOLL_CTL_ADD, 0, &event) != 0) return 1;
    write(1, "ready\n", 6);
    return epoll_wait(events, &event, 1, -1) != 1;
}

/* Chunks that only libc asks for. */
static int within(void) {
    signal(SIGTERM, end);
    write(1, "ready\n", 6);
    while (!is_over) {
        regex_t found;
        if (regcomp(&found, "a", 0) == 0) regfree(&found);
    }
    return 0;
}

int main(int count, char **words) {
    if (count < 2) return 2;
    if (strcmp(words[1], "exact") == 0) return exact(count > 2 ? words[2] : 0);
    if (strcmp(words[1], "busy") == 0) return busy();
    if (strcmp(words[1], "alone") == 0) return alone();
    if (strcmp(words[1], "waits") == 0) return waits();
    if (strcmp(words[1], "within") == 0) return within();
    return 2;
}
