// std::list, std::map and std::set whose nodes lie near each other.
//
//     c++ -std=c++17 containers.cpp $(pkg-config --cflags --libs libccmalloc) -o containers
//
// Checks every answer, and that nodes which follow each other lie together: those of a list share blocks of 64 bytes; those of a map have 40 bytes with
// GNU's library, too many for two in a block, and share the 256 bytes that one access to memory brings in.
#include <ccmalloc.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

namespace {

void require(bool holds, const char *what) {
    if (holds) return;
    std::fprintf(stderr, "not so: %s\n", what);
    std::exit(1);
}

ccmalloc_placement placement() {
    ccmalloc_placement report;
    ccmalloc_get_placement(&report, sizeof report);
    return report;
}

// How many elements of a container lie in the same aligned `bytes` as the one before them, in percent.
template <class Container>
int together_percent(const Container &container, std::uintptr_t bytes) {
    std::size_t pairs = 0, same = 0;
    std::uintptr_t before = 0;
    for (const auto &element : container) {
        const auto block = reinterpret_cast<std::uintptr_t>(&element) / bytes;
        if (before != 0) {
            pairs++;
            same += block == before;
        }
        before = block;
    }
    return static_cast<int>(100 * same / pairs);
}

std::uint64_t next_random() {
    static std::uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 32;
}

constexpr int count = 20000;

using List = std::list<int, cc::hint_allocator<int>>;
using Set = std::set<int, std::less<int>, cc::hint_allocator<int>>;
using Map = std::map<int, int, std::less<int>, cc::hint_allocator<std::pair<const int, int>>>;

// Between other allocations, as in a real program: what a plain list would be scattered by.
void lists() {
    List list;
    std::vector<List> others(100);
    const auto before = placement();
    for (int i = 0; i < count; i++) {
        list.push_back(i);
        others[next_random() % others.size()].push_front(i);
    }
    const auto after = placement();
    int expected = 0;
    for (int value : list) require(value == expected++, "a list keeps its order");
    std::printf("list: %d%% of the neighbours in one cache block\n", together_percent(list, 64));
    require(after.same_block > before.same_block, "the report counts nodes in the block of their hint");
    require(together_percent(list, 64) >= 40, "neighbours in a list share blocks");
    // Nodes may change containers.
    list.splice(list.begin(), others[0]);
    List moved = std::move(list);
    others[1].swap(moved);
    List copy = others[1];
    require(copy == others[1] && copy.size() > static_cast<std::size_t>(count), "spliced, moved, swapped, copied");
}

// Keys in ascending order with gaps, as a map of time stamps gets them, between the allocations of others.
void maps() {
    Map map, other;
    for (int i = 0; i < count; i++) {
        const int key = 4 * i + static_cast<int>(next_random() % 4);
        cc::emplace_near(map, map.lower_bound(key), key, key * 3);
        const int any = static_cast<int>(next_random() % (4 * count));
        cc::emplace_near(other, other.lower_bound(any), any, any * 3);
    }
    for (const auto &[key, value] : other) require(value == key * 3, "a map keeps its values");
    int last = -1;
    for (const auto &[key, value] : map) {
        require(last < key && value == key * 3, "a map keeps its order and its values");
        last = key;
    }
    std::printf("map:  %d%% of the neighbours in the same 256 bytes\n", together_percent(map, 256));
    require(together_percent(map, 256) >= 20, "neighbours in a map lie together");
    for (int key = 0; key < 4 * count; key += 2) map.erase(key);
    for (const auto &entry : map) require(entry.first % 2 == 1, "erased");
}

void sets() {
    Set set;
    const int anchor = 0;
    for (int i = 0; i < 1000; i++) {
        // A hint for all that a scope allocates.
        const cc::near scope(set.empty() ? &anchor : &*set.begin());
        set.insert((i * 7919) % 1000);
    }
    require(set.size() == 1000 && *set.begin() == 0 && *set.rbegin() == 999, "a set holds what was inserted");
}

// A hash table's elements have a neighbour where their bucket has one already.
void tables() {
    using Table = std::unordered_map<int, int, std::hash<int>, std::equal_to<int>, cc::hint_allocator<std::pair<const int, int>>>;
    Table table;
    for (int key = 0; key < count; key++) {
        const std::size_t bucket = table.empty() ? 0 : table.bucket(key);
        const auto neighbour = table.empty() || table.cbegin(bucket) == table.cend(bucket) ? table.cend() : table.find(table.cbegin(bucket)->first);
        cc::emplace_near(table, neighbour, key, key * 3);
    }
    require(table.size() == static_cast<std::size_t>(count), "a table keeps all");
    for (const auto &[key, value] : table) require(value == key * 3, "a table keeps its values");
}

// operator new and delete of every form come to the library through malloc and free.
void operators() {
    struct alignas(128) Wide {
        char bytes[128];
    };
    auto *plain = new int(7);
    auto *array = new double[1000];
    auto *wide = new Wide();
    require(ccmalloc_contains(plain) && ccmalloc_contains(array) && ccmalloc_contains(wide), "new allocates here");
    require(reinterpret_cast<std::uintptr_t>(wide) % 128 == 0, "alignment of new");
    std::vector<Wide, cc::hint_allocator<Wide>> wides(3);
    require(reinterpret_cast<std::uintptr_t>(wides.data()) % 128 == 0, "alignment of hint_allocator");
    delete plain;
    delete[] array;
    delete wide;
    ::operator delete(::operator new(40), std::size_t(40));
    ::operator delete(::operator new(40, std::align_val_t(64)), std::size_t(40), std::align_val_t(64));
    try {
        cc::hint_allocator<int> allocator;
        require(allocator.allocate(SIZE_MAX / 2) == nullptr, "unreachable");
    } catch (const std::bad_alloc &) {
        return;
    }
    require(false, "too much memory throws");
}

}  // namespace

int main() {
    lists();
    maps();
    sets();
    tables();
    operators();
    return 0;
}
