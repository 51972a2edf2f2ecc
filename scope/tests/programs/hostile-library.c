// A library that makes a tool's life hard; which one is told by a macro.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef WAITS
// The dynamic linker's lock is held until the thread has ended.
static void *write_line(void *unused) {
    if (write(1, "thread\n", 7) != 7)
        abort();
    return unused;
}

__attribute__((constructor)) static void wait_for_a_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, write_line, NULL);
    pthread_join(thread, NULL);
}
#endif

#ifdef ATFORK
void *volatile kept;

static void allocate_in_child(void) {
    for (int i = 0; i < 20; i++)
        kept = malloc(7777);
}

// Before all that others register.
__attribute__((constructor)) static void register_first(void) {
    pthread_atfork(NULL, NULL, allocate_in_child);
}
#endif

#ifdef WRITE
volatile int taken;

// Returns once the other thread has taken over what was written.
ssize_t write(int file, const void *from, size_t len) {
    taken = 0;
    ssize_t moved = syscall(SYS_write, file, from, len);
    while (moved == 8 && !taken)
        ;
    return moved;
}
#endif

#ifdef ALLOCATOR
// Has no `malloc_usable_size`; nothing can be read before a block.
void *malloc(size_t size) {
    size_t len = (size + 4096) & ~(size_t)4095;
    char *room = mmap(NULL, len + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(room + 4096, len, PROT_READ | PROT_WRITE);
    return room + 4096;
}

void free(void *block) { (void)block; }

void *calloc(size_t count, size_t size) { return malloc(count * size); }

void *realloc(void *old, size_t size) {
    void *new = malloc(size);
    if (old)
        memcpy(new, old, size < 4096 ? size : 4096);
    return new;
}
#endif
