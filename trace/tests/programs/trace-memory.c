// Memory that a program changes while it is traced: one line a case. Its argument is the folder of
// a library, `first.so`, of which `second.so` is a copy.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ul
#define PLAIN (MAP_PRIVATE | MAP_ANONYMOUS)
#define BOTH (PROT_READ | PROT_WRITE)

static sigjmp_buf back;
static char *volatile fault;

static void on_fault(int signal, siginfo_t *info, void *context) {
    fault = info->si_addr;
    siglongjmp(back, signal);
}

// What is at an address: a letter for "may be written", "may be read", "may not be accessed".
static char right(char *at) {
    volatile char *place = at;
    if (sigsetjmp(back, 1))
        return '-';
    char value = *place;
    if (sigsetjmp(back, 1))
        return 'r';
    *place = value;
    return 'w';
}

// The same of a range of pages, behind the contents of the first byte of each.
static void rights(const char *name, char *at, int pages) {
    printf("%s:", name);
    for (int i = 0; i < pages; i++) {
        char letter = right(at + i * PAGE);
        printf(" %c%d", letter, letter == '-' ? 0 : at[i * PAGE]);
    }
    printf("\n");
}

// Pages with the numbers 1, 2, …
static char *map(int pages, int flags) {
    char *at = mmap(NULL, pages * PAGE, BOTH, PLAIN | flags, -1, 0);
    for (int i = 0; i < pages; i++)
        at[i * PAGE] = i + 1;
    return at;
}

static void protects(void) {
    char *at = map(9, 0);
    mprotect(at + PAGE, PAGE, PROT_READ);
    mprotect(at + 2 * PAGE, PAGE, PROT_NONE);
    mprotect(at + 4 * PAGE, 3 * PAGE, PROT_READ);
    mprotect(at + 5 * PAGE, PAGE, PROT_WRITE);
    rights("mprotect", at, 9);
    mprotect(at, 9 * PAGE, PROT_READ);
    rights("mprotect", at, 9);
    munmap(at + 3 * PAGE, 2 * PAGE);
    int failed = mprotect(at, 9 * PAGE, BOTH);
    printf("over a hole %d %d\n", failed, errno);
    rights("over a hole", at, 9);
    munmap(at, 9 * PAGE);
    rights("unmapped", at, 9);
    failed = mprotect(at, PAGE, BOTH);
    printf("nothing %d %d\n", failed, errno);
    failed = mprotect(at + 1, PAGE, BOTH);
    printf("bad %d %d\n", failed, errno);
    // Of the heap, data and bss.
    char *heap = aligned_alloc(PAGE, 4 * PAGE);
    memset(heap, 5, 4 * PAGE);
    mprotect(heap + PAGE, PAGE, PROT_NONE);
    rights("heap", heap, 4);
    mprotect(heap + PAGE, PAGE, BOTH);
    rights("heap", heap, 4);
    free(heap);
    static char bss[5 * PAGE];
    char *in_bss = (char *)(((uintptr_t)bss + PAGE - 1) & -PAGE);
    in_bss[PAGE] = 3;
    mprotect(in_bss + PAGE, PAGE, PROT_READ);
    rights("bss", in_bss, 3);
    mprotect(in_bss + PAGE, PAGE, BOTH);
    rights("bss", in_bss, 3);
    // Code that is made.
    char *code = mmap(NULL, PAGE, BOTH, PLAIN, -1, 0);
    memcpy(code, "\x8d\x47\x05\xc3", 4);
    mprotect(code, PAGE, PROT_READ | PROT_EXEC);
    printf("code %d\n", ((int (*)(int))code)(37));
    mprotect(code, PAGE, BOTH);
    code[2] = 6;
    mprotect(code, PAGE, PROT_READ | PROT_EXEC);
    printf("code %d\n", ((int (*)(int))code)(37));
}

static void moves(void) {
    char *at = map(4, 0);
    at = mremap(at, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
    rights("grown", at, 8);
    at = mremap(at, 8 * PAGE, 3 * PAGE, 0);
    rights("shrunk", at, 3);
    rights("behind", at + 3 * PAGE, 1);
    // To a place of the program's choice, where something is.
    char *place = map(6, 0);
    char *moved = mremap(at, 3 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place + PAGE);
    printf("fixed %d\n", moved == place + PAGE);
    rights("fixed", place, 6);
    rights("left", at, 3);
    // A part of a mapping, larger at another place.
    char *part = mremap(place + 2 * PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
    rights("part", part, 2);
    rights("rest", place, 6);
    // Read only memory keeps its protection.
    mprotect(part, 2 * PAGE, PROT_READ);
    part = mremap(part, 2 * PAGE, 5 * PAGE, MREMAP_MAYMOVE);
    rights("read only", part, 5);
    // What stays where it was.
    at = map(3, 0);
    char *copy = mremap(at, 3 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    printf("kept %d\n", copy != MAP_FAILED && copy != at);
    if (copy != MAP_FAILED) {
        rights("kept", copy, 3);
        rights("kept", at, 3);
    }
    printf("errors %d", mremap(at + 1, PAGE, PAGE, 0) == MAP_FAILED ? errno : 0);
    printf(" %d", mremap(at, PAGE, 0, 0) == MAP_FAILED ? errno : 0);
    printf(" %d", mremap(at, PAGE, PAGE, MREMAP_FIXED, place) == MAP_FAILED ? errno : 0);
    munmap(at, 3 * PAGE);
    printf(" %d\n", mremap(at, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED ? errno : 0);
    // `realloc` of large blocks.
    int *block = malloc(1 << 20);
    for (int size = 20; size < 25; size++) {
        for (int i = 0; i < 64; i++)
            block[((1l << size) / 64 * i) / 4] = i + size;
        block = realloc(block, 1l << (size + 1));
    }
    printf("realloc %d %d\n", block[0], block[(1 << 24) / 64 * 63 / 4]);
    free(block);
}

static void places(void) {
    char *at = map(6, 0);
    char *got = mmap(at + PAGE, 2 * PAGE, BOTH, PLAIN | MAP_FIXED, -1, 0);
    printf("fixed %d\n", got == at + PAGE);
    rights("fixed", at, 6);
    mmap(at + 2 * PAGE, PAGE, PROT_READ, PLAIN | MAP_FIXED, -1, 0);
    rights("read only", at, 6);
    int file = memfd_create("file", 0);
    ftruncate(file, 3 * PAGE);
    pwrite(file, "\x33", 1, PAGE);
    mmap(at + 3 * PAGE, 2 * PAGE, BOTH, MAP_SHARED | MAP_FIXED, file, PAGE);
    rights("file", at, 6);
    at[4 * PAGE] = 0x34;
    char byte = 0;
    pread(file, &byte, 1, 2 * PAGE);
    printf("shared %d\n", byte);
    mmap(at + 3 * PAGE, PAGE, BOTH, PLAIN | MAP_FIXED, -1, 0);
    rights("over the file", at, 6);
    errno = 0;
    got = mmap(at, PAGE, BOTH, PLAIN | MAP_FIXED_NOREPLACE, -1, 0);
    printf("not replaced %d %d\n", got == MAP_FAILED, errno);
    // Across the ends of a mapping.
    char *area = mmap(NULL, 12 * PAGE, PROT_NONE, PLAIN | MAP_NORESERVE, -1, 0);
    mmap(area + 2 * PAGE, 4 * PAGE, BOTH, PLAIN | MAP_FIXED, -1, 0);
    memset(area + 2 * PAGE, 9, 4 * PAGE);
    mmap(area + 5 * PAGE, 3 * PAGE, BOTH, PLAIN | MAP_FIXED, -1, 0);
    rights("reserved", area, 12);
    mmap(area, 12 * PAGE, PROT_NONE, PLAIN | MAP_FIXED, -1, 0);
    rights("reserved", area, 12);
    munmap(area + PAGE, 2 * PAGE);
    got = mmap(area + PAGE, 2 * PAGE, BOTH, PLAIN | MAP_FIXED_NOREPLACE, -1, 0);
    printf("free again %d\n", got == area + PAGE);
    rights("free again", area, 4);
    char *low = mmap(NULL, PAGE, BOTH, PLAIN | MAP_32BIT, -1, 0);
    printf("low %d\n", low != MAP_FAILED && (uintptr_t)low < 1ul << 32);
    *low = 1;
    // Larger than what is traced.
    char *large = mmap(NULL, 3ul << 30, BOTH, PLAIN | MAP_NORESERVE, -1, 0);
    large[2ul << 30] = 3;
    printf("large %d %d\n", large[2ul << 30], large[1ul << 30]);
    munmap(large, 3ul << 30);
    int errors[3] = {0};
    errors[0] = mmap(NULL, 0, BOTH, PLAIN, -1, 0) == MAP_FAILED ? errno : 0;
    errors[1] = mmap(at + 1, PAGE, BOTH, PLAIN | MAP_FIXED, -1, 0) == MAP_FAILED ? errno : 0;
    errors[2] = munmap(at + 1, PAGE) ? errno : 0;
    printf("errors %d %d %d\n", errors[0], errors[1], errors[2]);
}

static void advice(void) {
    char *at = map(8, 0);
    printf("advice %d", madvise(at + PAGE, 2 * PAGE, MADV_DONTNEED));
    printf(" %d", madvise(at, 8 * PAGE, MADV_SEQUENTIAL));
    printf(" %d", madvise(at, 8 * PAGE, MADV_WILLNEED));
    printf(" %d", madvise(at, 8 * PAGE, MADV_DONTFORK));
    printf(" %d", madvise(at, 8 * PAGE, 12345));
    printf(" %d\n", madvise(at + 1, PAGE, MADV_DONTNEED));
    rights("advice", at, 8);
    // What was freed lazily has its content or none.
    at = map(2, 0);
    printf("lazily %d ", madvise(at, 2 * PAGE, MADV_FREE));
    at[0] = 8;
    printf("%d\n", at[0]);
    at = map(2, 0);
    printf("locked %d", mlock(at, 2 * PAGE) | munlock(at, 2 * PAGE));
    unsigned char *there = calloc(2, 1);
    printf(" %d", mincore(at, 2 * PAGE, there));
    printf(" %d\n", there[0] & 1);
    printf("synced %d\n", msync(at, PAGE, MS_SYNC));
}

static void huge(void) {
    unsigned long size = 2ul << 20;
    char *at = mmap(NULL, 4 * size, BOTH, PLAIN, -1, 0);
    char *aligned = (char *)(((uintptr_t)at + size - 1) & -size);
    printf("advised %d", madvise(aligned, 2 * size, MADV_HUGEPAGE));
    memset(aligned, 6, 2 * size);
    printf(" %d", madvise(aligned, 2 * size, MADV_NOHUGEPAGE));
    printf(" %d %d\n", aligned[size], aligned[2 * size - 1]);
    munmap(at, 4 * size);
    errno = 0;
    char *pool = mmap(NULL, size, BOTH, PLAIN | MAP_HUGETLB, -1, 0);
    printf("pool %d %d\n", pool == MAP_FAILED, errno);
    if (pool != MAP_FAILED)
        pool[5] = 1;
}

// Data up to a page that may not be accessed, as allocators that find overruns lay it out.
static void guards(void) {
    char *at = map(3, 0);
    mprotect(at, PAGE, PROT_NONE);
    mprotect(at + 2 * PAGE, PAGE, PROT_NONE);
    char *low = at + PAGE, *behind = at + 2 * PAGE;
    for (int i = 1; i < 20; i++)
        behind[-i] = i;
    memcpy(low, behind - 16, 16);
    printf("guards %d %d", low[0], low[15]);
    for (int i = 0; i < 3; i++) {
        fault = NULL;
        if (!sigsetjmp(back, 1)) {
            if (i == 0)
                *(volatile long *)(behind - 4) = 1;
            else if (i == 1)
                *(volatile char *)(low - 1) = 1;
            else
                memset(low + 4000, 1, 97 + i);
        }
        printf(" %ld", (long)(fault - at));
    }
    printf("\n");
}

static void *grows(void *unused) {
    void *sum = 0;
    for (int i = 1; i < 40; i++) {
        char *at = mmap(NULL, i * PAGE, BOTH, PLAIN, -1, 0);
        at[(i - 1) * PAGE] = i;
        if (i % 2)
            at = mremap(at, i * PAGE, 2 * i * PAGE, MREMAP_MAYMOVE);
        sum += at[(i - 1) * PAGE];
        if (i % 3)
            munmap(at, i * PAGE);
    }
    return sum;
}

static void threads(void) {
    pthread_t all[4];
    long sum = 0;
    for (int i = 0; i < 4; i++)
        pthread_create(&all[i], NULL, grows, NULL);
    for (int i = 0; i < 4; i++) {
        void *got;
        pthread_join(all[i], &got);
        sum += (long)got;
    }
    printf("threads %ld\n", sum);
}

static void breaks(void) {
    char *start = sbrk(0);
    char *got = sbrk(3 * PAGE + 5);
    memset(start, 4, 3 * PAGE);
    printf("break %d %d\n", got == start, (char *)sbrk(0) == start + 3 * PAGE + 5);
    brk(start + PAGE);
    char *behind = (char *)(((uintptr_t)start + 2 * PAGE) & -PAGE);
    printf("break %d %d\n", start[PAGE - 1], right(behind));
    sbrk(2 * PAGE);
    printf("break %d\n", *behind);
}

static void libraries(const char *folder) {
    char path[4096];
    void *kept = NULL;
    for (int turn = 0; turn < 6; turn++) {
        snprintf(path, sizeof path, "%s/%s.so", folder, turn % 2 ? "second" : "first");
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        int (*count)(int) = dlsym(library, "count");
        int *variable = dlsym(library, "variable"), *array = dlsym(library, "array");
        int sum = 0;
        for (int i = 0; i < 20; i++)
            sum += count(i);
        *variable += turn;
        array[3000] = sum;
        printf("library %d %d %d %d", sum, *variable, array[3000], array[5]);
        // One stays, so that others come elsewhere.
        if (turn == 2)
            kept = mmap(NULL, 64 * PAGE, BOTH, PLAIN, -1, 0);
        printf(" %d\n", dlclose(library));
    }
    munmap(kept, 64 * PAGE);
}

int main(int number, char **words) {
    setvbuf(stdout, NULL, _IONBF, 0);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    protects();
    moves();
    places();
    advice();
    huge();
    guards();
    threads();
    breaks();
    libraries(words[1]);
    return 0;
}
