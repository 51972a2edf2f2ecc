// ccmalloc for C++17: an allocator that places the nodes of std::list, std::map, std::set and the like near each other.
//
//     std::list<int, cc::hint_allocator<int>> list;      // each node near the one allocated before it
//
//     std::map<int, T, std::less<int>, cc::hint_allocator<std::pair<const int, T>>> map;
//     cc::emplace_near(map, map.lower_bound(key), key, value);      // near its neighbour in the order
//
// What an allocator can know: a container asks it for the memory of a node, and says nothing of where the node will be linked. So
// hint_allocator gives as hint the node that it allocated last. That is the right neighbour for a list that grows at one end, for a map that is
// filled in order, and for the nodes of one short structure; for insertions all over it is no better than chance. Whoever inserts knows
// better, and says so with cc::near (a hint for a scope) or cc::emplace_near. A hint helps while there is room near it: when a large map is
// filled in random order, the pages of the neighbours are full by the time most keys come, and little is gained. Containers that hold their elements in one array
// (std::vector, std::deque, the bucket array of std::unordered_map) gain nothing.
//
// ccmalloc_get_placement() tells what became of the hints.
#ifndef CCMALLOC_HPP
#define CCMALLOC_HPP

#include <cstddef>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <ccmalloc.h>

namespace cc {

namespace detail {
// The hint of the innermost cc::near of this thread.
inline thread_local const void *scope_hint = nullptr;

inline const void *address_of(const volatile void *place) noexcept {
    return const_cast<const void *>(place);
}
}  // namespace detail

// While it lives, every hint_allocator of this thread allocates near `hint`, which may be any address. May be nested: the innermost holds.
class near {
public:
    explicit near(const volatile void *hint) noexcept
        : before_(detail::scope_hint) {
        detail::scope_hint = detail::address_of(hint);
    }
    near(const near &) = delete;
    near &operator=(const near &) = delete;
    ~near() { detail::scope_hint = before_; }

private:
    const void *before_;
};

// An allocator (C++17, named requirement Allocator) whose objects lie near each other.
//
// All hint_allocators are equal: each may free what another has allocated, whatever its type, so containers can be moved, swapped and spliced. The
// address of the latest object is kept in the allocator, one word in each container; copies go their own ways.
template <class T>
class hint_allocator {
public:
    using value_type = T;
    using is_always_equal = std::true_type;
    // The latest node belongs to the nodes, and goes where they go.
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    hint_allocator() noexcept = default;
    hint_allocator(const hint_allocator &) noexcept = default;
    hint_allocator &operator=(const hint_allocator &) noexcept = default;
    template <class U>
    hint_allocator(const hint_allocator<U> &other) noexcept  // NOLINT: allocators convert.
        : last_(other.last()) {}

    T *allocate(std::size_t count) {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
        void *object;
        if constexpr (alignof(T) > alignof(std::max_align_t)) {
            // Hints are for nodes; these go where their alignment puts them.
            object = ::operator new(count * sizeof(T), std::align_val_t(alignof(T)));
        } else {
            const void *hint = detail::scope_hint ? detail::scope_hint : last_;
            // The first object has no neighbour yet. Any hint but null gets it a place that has room beside it; this one is at hand.
            object = ccmalloc(count * sizeof(T), hint ? hint : this);
            if (!object) throw std::bad_alloc();
            last_ = object;
        }
        return static_cast<T *>(object);
    }

    void deallocate(T *object, std::size_t) noexcept {
        if constexpr (alignof(T) > alignof(std::max_align_t)) {
            ::operator delete(object, std::align_val_t(alignof(T)));
        } else {
            // A freed object stays a good hint: what lies around it is still there.
            ccfree(object);
        }
    }

    // The object that was allocated last, freed or not; null before the first.
    const void *last() const noexcept { return last_; }

private:
    const void *last_ = nullptr;
};

template <class T, class U>
bool operator==(const hint_allocator<T> &, const hint_allocator<U> &) noexcept {
    return true;
}
template <class T, class U>
bool operator!=(const hint_allocator<T> &, const hint_allocator<U> &) noexcept {
    return false;
}

namespace detail {
template <class Container, class = void>
struct takes_hints : std::false_type {};
// Associative containers have emplace_hint; sequences have emplace.
template <class Container>
struct takes_hints<Container, std::void_t<typename Container::key_type>> : std::true_type {};

// Whether there is a way back from the end.
template <class Container>
inline constexpr bool goes_back = std::is_base_of_v<std::bidirectional_iterator_tag,
                                                    typename std::iterator_traits<typename Container::const_iterator>::iterator_category>;
}  // namespace detail

// Inserts an element built from `args` at `position` (for a sequence: before it; for an ordered container: as emplace_hint does, so that
// lower_bound(key) is the position to name), near the element at `position`, or the one before it at the end. An unordered container has no
// element before its end: there, as without emplace_near.
template <class Container, class... Args>
typename Container::iterator emplace_near(Container &container, typename Container::const_iterator position, Args &&...args) {
    const void *hint = detail::scope_hint;
    if (position != container.cend()) {
        hint = detail::address_of(std::addressof(*position));
    } else if constexpr (detail::goes_back<Container>) {
        if (position != container.cbegin()) hint = detail::address_of(std::addressof(*std::prev(position)));
    }
    const near scope(hint);
    if constexpr (detail::takes_hints<Container>::value) {
        return container.emplace_hint(position, std::forward<Args>(args)...);
    } else {
        return container.emplace(position, std::forward<Args>(args)...);
    }
}

}  // namespace cc

#endif
