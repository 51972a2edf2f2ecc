// What a tracer may break: signals, memory that changes, processes, threads that wait.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile int faults, alarms;
static int data[4] = {1, 2, 3, 4}, bss[1000];
static ucontext_t main_context, other_context;

static void on_fault(int signal, siginfo_t *info, void *context) {
    faults++;
    siglongjmp(back, 1);
}

static void on_alarm(int signal) {
    alarms++;
    bss[5]++;
}

static void coroutine(void) {
    volatile char local[2000];
    memset((void *)local, 3, sizeof local);
    data[3] += local[1999];
}

static void *wait_a_little(void *heap) {
    usleep(1000);
    ++*(int *)heap;
    return NULL;
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    struct sigaction action = {0};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536}, old;
    sigaltstack(&stack, NULL);
    sigaltstack(NULL, &old);
    printf("stack %d\n", old.ss_sp == stack.ss_sp && old.ss_size == 65536);
    sigaction(SIGSEGV, &action, NULL);
    if (!sigsetjmp(back, 1))
        *(volatile int *)0 = 1;
    char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    map[0] = 1;
    mprotect(map + 4096, 4096, PROT_NONE);
    if (!sigsetjmp(back, 1))
        map[4096] = 1;
    mprotect(map + 4096, 4096, PROT_READ);
    int zero = map[4096];
    if (!sigsetjmp(back, 1))
        map[4096] = 1;
    mprotect(map, 8192, PROT_READ | PROT_WRITE);
    map = mremap(map, 8192, 1 << 20, MREMAP_MAYMOVE);
    memset(map + 8192, 7, 4096);
    madvise(map + 8192, 4096, MADV_DONTNEED);
    printf("map %d %d %d\n", map[0], zero, map[9000]);
    map = mmap(map, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    printf("fixed %d\n", map[0]);
    munmap(map, 1 << 20);
    signal(SIGALRM, on_alarm);
    alarm(1);
    while (!alarms)
        usleep(1000);
    printf("signals %d %d %d\n", faults, alarms, bss[5]);

    int *heap = malloc(4000), pipes[2];
    heap[3] = 42;
    pipe(pipes);
    pid_t child = fork();
    if (child == 0) {
        heap[3]++;
        data[0] = 9;
        write(pipes[1], &heap[3], sizeof(int));
        _exit(data[0]);
    }
    int status, *got = malloc(8);
    waitpid(child, &status, 0);
    struct iovec parts[2] = {{got, 2}, {(char *)got + 2, 2}};
    readv(pipes[0], parts, 2);
    printf("child %d %d, mine %d %d\n", WEXITSTATUS(status), *got, heap[3], data[0]);
    printf("system %d\n", system("echo from a shell"));
    FILE *cat = popen("cat", "w");
    fprintf(cat, "through a pipe\n");
    pclose(cat);

    getcontext(&other_context);
    other_context.uc_stack.ss_sp = malloc(65536);
    other_context.uc_stack.ss_size = 65536;
    other_context.uc_link = &main_context;
    makecontext(&other_context, coroutine, 0);
    swapcontext(&main_context, &other_context);
    printf("coroutine %d\n", data[3]);

    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, wait_a_little, heap);
        pthread_join(thread, NULL);
    }
    printf("threads %d\n", heap[0]);
    char *words[] = {strdup("sh"), strdup("-c"), strdup("echo replaced; kill -9 $$"), NULL};
    execv("/bin/sh", words);
    return 1;
}
