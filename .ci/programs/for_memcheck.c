#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <valgrind/memcheck.h>

/* Valgrind takes memory that MADV_DONTNEED has cleared for what it was before. */
int madvise(void *start, size_t bytes, int advice) {
    int result = (int)syscall(SYS_madvise, start, bytes, advice);
    if (result == 0 && advice == MADV_DONTNEED)
        (void)VALGRIND_MAKE_MEM_DEFINED(start, bytes);
    return result;
}

/* When a mapping moves and becomes longer, valgrind 3.19 takes the access rights of the new part
   from a segment that it has just moved, and may call every use of that part invalid. So no mapping
   grows: it is copied. */
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
