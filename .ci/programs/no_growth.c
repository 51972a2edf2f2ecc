#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *mremap(void *start, size_t old_bytes, size_t new_bytes, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    void *target = (flags & MREMAP_FIXED) ? va_arg(rest, void *) : NULL;
    va_end(rest);
    if (new_bytes > old_bytes) {
        errno = EFAULT;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mremap, start, old_bytes, new_bytes, flags, target);
}
