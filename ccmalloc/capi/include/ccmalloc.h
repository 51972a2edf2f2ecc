/* ccmalloc: a malloc that takes a hint, and puts the new object into the hint's cache block.
 *
 *     struct node *child = ccmalloc(sizeof *child, parent);
 *
 * A processor waits some hundred nanoseconds for a node that malloc put anywhere, and nothing for one that lies in the cache block (64 bytes)
 * it has just fetched. Name as hint the object that is most likely used right before the new one: a tree node's parent, a list node's
 * predecessor, the tail of a hash chain.
 *
 * The library also holds the whole malloc family. A program that is linked with it, or run with LD_PRELOAD, gets all of its memory from here,
 * and free() and ccfree() are the same function. A program that opens the library with dlopen() keeps the C library's malloc: it frees what
 * the functions below return with ccfree(), and nothing else with it.
 *
 * All functions may be called from any thread, and no object belongs to a thread: what one allocates another may free. None of them may be
 * called from a signal handler, like malloc. What is found not to be a live object when it is freed (freed before, a pointer into an
 * object, another allocator's) ends the process with one line on stderr and SIGABRT.
 */
#ifndef CCMALLOC_H
#define CCMALLOC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CCMALLOC_ATTRIBUTE(attributes) __attribute__(attributes)
#else
#define CCMALLOC_ATTRIBUTE(attributes)
#endif

/* Where on the hint's page (4 KiB) an object goes when the hint's own block has no room for it. */
enum ccmalloc_policy {
    /* The block nearest to the hint's that has room. */
    CCMALLOC_CLOSEST = 0,
    /* The first block of the page that has room: packs tightest. */
    CCMALLOC_FIRST_FIT = 1,
    /* A block that holds nothing yet, so that the rest of it serves later hints at the new object. The default: takes the most memory, and
     * gains the most. */
    CCMALLOC_NEW_BLOCK = 2
};

/* Allocates `size` bytes, near `hint` where there is room. The memory is aligned as malloc's is: to 16 from 16 bytes on, else to 8.
 *
 * Any hint is safe: it is a number to the allocator, which never reads through it. A freed, foreign, misaligned or invented one costs placement,
 * never correctness. NULL hints at nothing: the call is then malloc(size). To start a structure that later hints will point into, name any address
 * that is not NULL (its own root pointer's, say): objects that malloc placed are no good as hints, since they have no room beside them.
 * Hints are honoured for up to 512 bytes.
 *
 * Returns NULL, with errno ENOMEM, when out of memory. A size of 0 gets an object of its own. */
void *ccmalloc(size_t size, const void *hint) CCMALLOC_ATTRIBUTE((malloc, alloc_size(1), warn_unused_result));

/* As ccmalloc, with a policy of the call's own: one of enum ccmalloc_policy. NULL with errno EINVAL when it is none. */
void *ccmalloc_policy(size_t size, const void *hint, int policy) CCMALLOC_ATTRIBUTE((malloc, alloc_size(1), warn_unused_result));

/* Changes the size of an object to `size` bytes, keeping its contents: in place where that can be, else by moving it near `hint`, or, when that is
 * NULL, near where it was if it had been placed by a hint itself. As realloc does it otherwise: a NULL `object` is allocated, a `size` of 0 frees
 * the object and returns NULL, and on failure (NULL, ENOMEM) the object is as it was. */
void *ccrealloc(void *object, size_t size, const void *hint) CCMALLOC_ATTRIBUTE((alloc_size(2), warn_unused_result));

/* Frees an object of any function of this library. NULL is fine. errno stays as it is. */
void ccfree(void *object);

/* Sets the policy of calls that name none, in all threads. Returns 0, or EINVAL when `policy` is none of enum ccmalloc_policy. */
int ccmalloc_set_policy(int policy);

/* Leaves `blocks` of the 64 blocks of each page to objects that are hinted at something on the page, in all threads, from now on: more of them lie on
 * the page of their hint, for more memory. More than 63 count as 63; 0 at first. */
void ccmalloc_set_reserved_blocks(size_t blocks);

/* Whether `address` (any value) lies in memory that this library manages: 1 or 0. */
int ccmalloc_contains(const void *address);

/* What became of the hints: how many hinted objects, over the life of the process and all of its threads, came to lie where. */
struct ccmalloc_placement {
    /* In the hint's own block of 64 bytes: one cache miss serves both. */
    uint64_t same_block;
    /* In the hint's 256 bytes, which one access to memory tends to bring in. */
    uint64_t same_group;
    /* Elsewhere in the hint's page of 4 KiB: one TLB entry serves both. */
    uint64_t same_page;
    /* In a page tied to the hint's, in the same 2 MiB: only where blocks are reserved, which this interface cannot ask for, so 0. */
    uint64_t tied_page;
    /* Anywhere else, because these were full. */
    uint64_t elsewhere;
    /* The hint pointed to nothing that a neighbour can be placed at: not this library's, another thread's, or allocated without a hint itself; or the
     * new object is larger than a hint can serve. */
    uint64_t not_usable;
};

/* Fills in `*report`. `size` is sizeof *report: a later version of the library may know more counters than the program, or fewer (these are 0).
 * Walks over the heaps, one a thread. */
void ccmalloc_get_placement(struct ccmalloc_placement *report, size_t size);

#ifdef __cplusplus
}
#endif

#endif
