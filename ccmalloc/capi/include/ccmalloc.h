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
 * object, another allocator's) ends the process with one line on stderr and SIGABRT, unless CCMALLOC_OPTIONS says otherwise.
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
    /* The nearest room, at the border of two blocks as well: for what is built in one go, in the order in which it is walked. */
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
    /* In a page tied to the hint's, in the same 2 MiB: only after ccmalloc_set_reserved_blocks. */
    uint64_t tied_page;
    /* Anywhere else, because these were full. */
    uint64_t elsewhere;
    /* The hint pointed to nothing that a neighbour can be placed at: not this library's, another thread's,
     * or allocated without a hint itself; or the new object is larger than a hint can serve. */
    uint64_t not_usable;
};

/* Where the environment variable CCMALLOC_REPORT names a file, the library appends a line to it when
 * the process ends: the program, its process number, and these counts in percent, with a verdict. Not in
 * programs that were started with more rights than their user has (set-user-ID and the like).
 *
 * Fills in `*report`. `size` is sizeof *report: a later version of the library may know more counters than the program, or fewer (these are 0).
 * Walks over the heaps, one a thread. */
void ccmalloc_get_placement(struct ccmalloc_placement *report, size_t size);

/* Gives unused memory back to the OS, of all threads, and returns about how many bytes. malloc_trim does the same. Otherwise memory goes back
 * once it has been unused for half a second, when a thread next takes or frees memory. */
size_t ccmalloc_purge(void);

/* Gives one line of JSON to `write`, in one call, or to stderr if it is NULL: bytes that are mapped, in use (rounded up to the 64 KiB that small
 * objects share), free and kept, the number of heaps, and what became of the hints. Allocates nothing. mallinfo2, malloc_info and malloc_stats
 * of glibc tell of this library's heap as well. */
void ccmalloc_stats_print(void (*write)(void *opaque, const char *text), void *opaque);

/* The environment variable CCMALLOC_OPTIONS holds `name:value` pairs, separated by commas:
 *   huge_pages:never|filled|always  which memory asks for huge pages (filled: what objects fill; not what calloc returns)
 *   decay_ms:N                      how long unused memory is kept, in milliseconds (500)
 *   kept_bytes:N[K|M|G]             how much of it is kept at most (what the process uses, within 16M and 128M)
 *   background_thread:true|false    whether a thread gives unused memory back in time if all others are idle (false)
 *   report:FILE                     append the line of ccmalloc_stats_print to FILE when the process ends
 *   errors:abort|warn               what a wrong free does after its line on stderr (abort)
 * What is none of these is named on stderr. Programs that were started with more rights than their user has ignore it. */

/* Lays the nodes of a tree, or of a list, out again, so that nodes that are used one after the other share cache blocks and pages; for structures that
 * are built first and searched often after that. The interface is that of T. Chilimbi, "Cache-Conscious Data Structures" (1999), figure 4-1:
 *
 *     void *next_node(void *node, int i)
 *     {
 *         struct quad *quad = node;
 *         switch (i) {
 *         case -1: return quad->parent;
 *         case 1:  return quad->nw;
 *         case 2:  return quad->ne;
 *         case 3:  return quad->sw;
 *         case 4:  return quad->se;
 *         }
 *         return NULL;
 *     }
 *     ...
 *     error = ccmorph(root, next_node, num_nodes, 4, 0, 0, 0, 0.0);
 *
 * `next_node(node, i)` returns, for `i` from 1 to `max_kids`, the i-th child of a node or NULL, and for -1 its parent, its predecessor, or NULL. It
 * returns pointers as the node holds them, in some field each (found out by comparing), and changes nothing. It is called from within the library
 * and must come back there: no longjmp past it, and no C++ exception out of it. Each node is allocated by a function of this library, all with the
 * same size, at most 4096 bytes. `num_nodes` is how many nodes there are, the root included, or 0 for any number.
 *
 * The root stays where it is. All others move to new memory of this library, and are objects like any others afterwards; their old memory is freed.
 * An alignment that all of them were allocated with, by aligned_alloc say, they keep, up to 4096. Pointers that `next_node` returns are changed,
 * but not what it returns for -1 and is no node of the structure, such as the parent of a subtree's root. The caller must make sure that no other
 * pointer to a node but the root is used any more. That is the promise that the compiler cannot check in C, and does in Rust.
 *
 * The cache that the structure is laid out for: `cache_sets` sets of `cache_associativity` blocks of `cache_blk_size` bytes (a power of two
 * from 8 to 65536). Subtrees are put into blocks of this size. With a block size of 0 the layout is the one that a model of this machine's caches
 * predicts to be the fastest. `color_const`, at least 0 and less than 1, is the part of the sets that is kept for the first nodes of the structure
 * alone, so that no other node of it evicts them; 0 for none. It takes address space, for first-level caches memory as well, and seldom pays
 * on today's machines (the library's guide says when).
 *
 * Returns 0 on success. Otherwise nothing has moved: EINVAL for nodes that are not this library's, are met twice (no tree), are not `num_nodes`
 * many, do not all hold what `next_node` returns for an `i` in the same field, or are too large, and for parameters that are none of the above;
 * ENOMEM when there is no memory for all nodes a second time, or for the list of them. errno stays as it is. O(num_nodes * max_kids).
 *
 * The lists take 40 to 100 bytes a node on top of the new places, until it returns. The larger part is the walk's, and gone when the layout is
 * computed; should there be no memory for what that needs after all, the process ends, as it does for other programs in Rust. */
int ccmorph(void *root, void *(*next_node)(void *node, int i), size_t num_nodes, int max_kids, size_t cache_sets, size_t cache_blk_size,
            size_t cache_associativity, double color_const);

#ifdef __cplusplus
}
#endif

#endif
