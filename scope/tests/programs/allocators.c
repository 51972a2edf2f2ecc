// Stands for mimalloc and jemalloc, by the functions that their crates call. Memory comes from one
// mapping and is never given back.
#include <string.h>
#include <sys/mman.h>

static char *next;

__attribute__((constructor)) static void begin(void) {
    next = mmap(NULL, 1 << 24, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void *take(size_t size) {
    void *taken = next;
    next += (size + 15) & ~(size_t)15;
    return taken;
}

static void *grow(void *old, size_t size) {
    return memcpy(take(size), old, size);
}

void *mi_malloc_aligned(size_t size, size_t alignment) {
    (void)alignment;
    return take(size);
}

void *mi_zalloc_aligned(size_t size, size_t alignment) {
    (void)alignment;
    return take(size);
}

void *mi_realloc_aligned(void *old, size_t size, size_t alignment) {
    (void)alignment;
    return grow(old, size);
}

void mi_free(void *old) {
    (void)old;
}

void *_rjem_malloc(size_t size) {
    return take(size);
}

void *_rjem_calloc(size_t count, size_t size) {
    return take(count * size);
}

void *_rjem_realloc(void *old, size_t size) {
    return grow(old, size);
}

void _rjem_sdallocx(void *old, size_t size, int flags) {
    (void)old, (void)size, (void)flags;
}
