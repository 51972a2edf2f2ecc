// Programs that rules and the learner could disturb: `rules CASE`. Each prints what must not depend
// on either. Run by `.ci/steps/rules`.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define CHECK(condition) \
    ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), abort()))

extern char **environ;
enum { PAGE = 4096 };
struct node { struct node *next; uint64_t value[2]; };

// The one place where the objects of most cases are allocated: at each depth of recursion, words of
// the stack up to 256 bytes away lie in other frames, and at the end of a stack beyond it.
__attribute__((noinline)) static struct node *push(struct node *head, uint64_t value) {
    struct node *node = malloc(sizeof *node);
    node->value[0] = value;
    node->value[1] = ~value;
    node->next = head;
    return node;
}

static uint64_t drain(struct node *head) {
    uint64_t sum = 0;
    while (head) {
        struct node *next = head->next;
        CHECK(head->value[1] == ~head->value[0]);
        sum = sum * 31 + head->value[0];
        free(head);
        head = next;
    }
    return sum;
}

static uint64_t work(int nodes) {
    struct node *head = 0;
    for (int i = 0; i < nodes; i++)
        head = push(head, i);
    return drain(head);
}

#ifdef MODULE
uint64_t work_there(int nodes) { return work(nodes); }
#else
// Objects that are hints in one thread while another frees them.
enum { SHARED = 256 };
static struct node *_Atomic shared[SHARED];
static _Atomic int is_over;

static void *free_shared(void *unused) {
    (void)unused;
    unsigned state = 7;
    while (!is_over) {
        state = state * 1664525 + 1013904223;
        free(__atomic_exchange_n((struct node **)&shared[state >> 24], 0, __ATOMIC_ACQ_REL));
    }
    return 0;
}

__attribute__((noinline)) static struct node *make_beside(struct node *other) {
    struct node *node = malloc(sizeof *node);
    node->value[0] = (uintptr_t)other;
    return node;
}

static void threads(void) {
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        CHECK(!pthread_create(&thread[i], 0, free_shared, 0));
    for (unsigned i = 0; i < 400000; i++) {
        struct node *made = make_beside(shared[i * 7919 % SHARED]);
        free(__atomic_exchange_n((struct node **)&shared[i % SHARED], made, __ATOMIC_ACQ_REL));
    }
    is_over = 1;
    for (int i = 0; i < 2; i++)
        CHECK(!pthread_join(thread[i], 0));
    for (int i = 0; i < SHARED; i++)
        free(shared[i]);
    puts("threads: over");
}

// Threads with the least stack, many of them: each asks anew where its stack lies.
static void *work_shortly(void *result) {
    *(uint64_t *)result = work(20);
    pthread_attr_t attributes;
    // Allocates under a lock of the thread.
    CHECK(!pthread_getattr_np(pthread_self(), &attributes));
    pthread_attr_destroy(&attributes);
    return 0;
}

static void small_threads(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK(!pthread_attr_setstacksize(&attributes, sysconf(_SC_THREAD_STACK_MIN)));
    uint64_t result[8], sum = 0;
    for (int round = 0; round < 400; round++) {
        pthread_t thread[8];
        for (int i = 0; i < 8; i++)
            CHECK(!pthread_create(&thread[i], round % 2 ? &attributes : 0, work_shortly, &result[i]));
        for (int i = 0; i < 8; i++) {
            CHECK(!pthread_join(thread[i], 0));
            sum += result[i];
        }
    }
    printf("small threads: %llu\n", (unsigned long long)sum);
}

// Coroutines: one page of stack each, with nothing mapped below and above.
static ucontext_t caller, coroutine;
static uint64_t total;

static void run_coroutine(void) {
    for (int i = 0; i < 50; i++) {
        total += work(9);
        swapcontext(&coroutine, &caller);
    }
}

static void coroutines(void) {
    for (volatile int round = 0; round < 40; round++) {
        char *pages = mmap(0, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(pages != MAP_FAILED && !munmap(pages, PAGE) && !munmap(pages + 3 * PAGE, PAGE));
        CHECK(!getcontext(&coroutine));
        coroutine.uc_stack.ss_sp = pages + PAGE;
        coroutine.uc_stack.ss_size = 2 * PAGE;
        coroutine.uc_link = &caller;
        makecontext(&coroutine, run_coroutine, 0);
        for (int i = 0; i < 51; i++)
            CHECK(!swapcontext(&caller, &coroutine));
        CHECK(!munmap(pages + PAGE, 2 * PAGE));
    }
    printf("coroutines: %llu\n", (unsigned long long)total);
}

// A context that is taken up again and again.
static void contexts(void) {
    static int rounds;
    getcontext(&caller);
    total += work(5);
    if (rounds++ < 1000)
        setcontext(&caller);
    printf("contexts: %llu\n", (unsigned long long)total);
}

// Handlers on a stack of their own, raised between calls of the allocator.
static void handle(int number) { total += work(7) + number; }

static void signals(void) {
    char *pages = mmap(0, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && !munmap(pages + 4 * PAGE, PAGE));
    stack_t stack = {.ss_sp = pages, .ss_size = 4 * PAGE};
    CHECK(!sigaltstack(&stack, 0));
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    CHECK(!sigaction(SIGUSR1, &action, 0));
    for (int i = 0; i < 20000; i++)
        raise(SIGUSR1);
    printf("signals: %llu\n", (unsigned long long)total);
}

// Processes: `fork` in the middle, `vfork` with `exec`, `posix_spawn`.
static void processes(char *self) {
    struct node *head = 0;
    for (int i = 0; i < 5000; i++)
        head = push(head, i);
    for (int i = 0; i < 3; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (!child) {
            total += work(5000);
            printf("child: %llu\n", (unsigned long long)(total + drain(head)));
            exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && !status);
    }
    char *arguments[] = {self, (char *)"signals", 0};
    for (int i = 0; i < 2; i++) {
        pid_t child;
        if (i)
            CHECK(!posix_spawn(&child, self, 0, 0, arguments, environ));
        else if (!(child = vfork())) {
            execve(self, arguments, environ);
            _exit(9);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && !status);
    }
    printf("processes: %llu\n", (unsigned long long)drain(head));
}

// A module that is loaded, unloaded and loaded again, and has a rule of its own: `-DMODULE`.
static void module(char *path) {
    for (int round = 0; round < 3; round++) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        CHECK(library);
        uint64_t (*work_there)(int);
        *(void **)&work_there = dlsym(library, "work_there");
        printf("module: %llu\n", (unsigned long long)work_there(20000));
        if (round < 2)
            dlclose(library);
    }
}

// A call stack through the allocator, taken by a signal while it runs.
static _Atomic int seen, whole;
int main(int, char **);

static void look(int number) {
    (void)number;
    void *frames[64];
    int count = backtrace(frames, 64);
    seen++;
    for (int i = 0; i < count; i++) {
        Dl_info info;
        if (dladdr(frames[i], &info) && info.dli_sname && !strcmp(info.dli_sname, "main"))
            whole++;
    }
}

static void backtraces(void) {
    void *first[2];
    backtrace(first, 2);
    struct sigaction action = {.sa_handler = look, .sa_flags = SA_RESTART};
    CHECK(!sigaction(SIGALRM, &action, 0));
    struct itimerspec every = {{0, 300000}, {0, 300000}};
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer) && !timer_settime(timer, 0, &every, 0));
    while (seen < 1000)
        total += work(100);
    CHECK(!timer_delete(timer));
    if (whole != seen)
        printf("backtraces: %d of %d reach main\n", whole, seen);
    else
        puts("backtraces: all reach main");
}

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "";
    if (!strcmp(name, "threads")) threads();
    else if (!strcmp(name, "small_threads")) small_threads();
    else if (!strcmp(name, "coroutines")) coroutines();
    else if (!strcmp(name, "contexts")) contexts();
    else if (!strcmp(name, "signals")) signals();
    else if (!strcmp(name, "processes")) processes(arguments[0]);
    else if (!strcmp(name, "module") && count > 2) module(arguments[2]);
    else if (!strcmp(name, "backtraces")) backtraces();
    else if (!strcmp(name, "work")) printf("work: %llu\n", (unsigned long long)work(200000));
    else return 2;
    return 0;
}
#endif
