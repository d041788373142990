// Runs CUDA functions on the host: the threads of a block are threads of the system, blocks follow one another.
// `__shared__` variables are static, so that the threads of a block share them.
#pragma once
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <thread>
#include <type_traits>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(n)

struct uint3 {
    unsigned x, y, z;
};
static thread_local uint3 threadIdx, blockIdx;
static thread_local long barriers;  // passed by this thread in this block
static uint3 blockDim, gridDim;
static pthread_barrier_t barrier;
__attribute__((aligned(16))) unsigned char shared[227 * 1024];

static inline void __syncthreads() {
    ++barriers;
    pthread_barrier_wait(&barrier);
}

// One lock for all atomic operations of a launch.
static pthread_mutex_t atomic_lock = PTHREAD_MUTEX_INITIALIZER;
template <typename T, typename F> static T atomically(T *place, F change) {
    pthread_mutex_lock(&atomic_lock);
    const T before = *place;
    *place = change(before);
    pthread_mutex_unlock(&atomic_lock);
    return before;
}
#define ATOMIC_ADD(T) \
    static inline T atomicAdd(T *place, T value) { \
        return atomically(place, [=](T before) { return (T)(before + value); }); \
    }
#define ATOMIC_BOUND(T) \
    static inline T atomicMin(T *place, T value) { \
        return atomically(place, [=](T before) { return before < value ? before : value; }); \
    } \
    static inline T atomicMax(T *place, T value) { \
        return atomically(place, [=](T before) { return before > value ? before : value; }); \
    }
ATOMIC_ADD(double) ATOMIC_ADD(float) ATOMIC_ADD(int) ATOMIC_ADD(unsigned long long)
ATOMIC_BOUND(int) ATOMIC_BOUND(long long)
static inline double rsqrt(double x) { return 1 / std::sqrt(x); }
static inline float rsqrtf(float x) { return 1 / std::sqrt(x); }

// An array argument that knows its size: an element outside is noted, and stands for nothing.
static std::atomic<int> outside;
template <typename T> struct checked {
    T *data;
    long long size;
    T &operator[](long long i) const {
        static thread_local typename std::remove_const<T>::type nothing;
        if (i >= 0 && i < size) return data[i];
        outside = 1;
        return nothing;
    }
    T &operator*() const { return (*this)[0]; }
};

// An array in shared memory that knows its extents, for the same purpose: beyond one row lies another, so that reading
// there goes unnoticed on a device, even by its memory checker.
template <typename T, long long Extent, long long... Rest> struct shared_array {
    typedef shared_array<T, Rest...> Row;
    Row rows[Extent];
    auto &operator[](long long i) {
        static thread_local Row nothing;
        if (i < 0 || i >= Extent) outside = 1;
        return i >= 0 && i < Extent ? rows[i] : nothing;
    }
};
template <typename T, long long Extent> struct shared_array<T, Extent> {
    T items[Extent];
    T &operator[](long long i) {
        static thread_local T nothing;
        if (i < 0 || i >= Extent) outside = 1;
        return i >= 0 && i < Extent ? items[i] : nothing;
    }
};

// Runs `body` for every thread of the grid. Returns 1 where threads of a block passed different numbers of barriers,
// 2 where one touched an element outside its array.
static inline int run_on_host(uint3 grid, uint3 block, const std::function<void()> &body) {
    const unsigned count = block.x * block.y * block.z;
    std::vector<long> passed(count);
    std::atomic<int> uneven(0);
    outside = 0;
    blockDim = block;
    gridDim = grid;
    pthread_barrier_init(&barrier, nullptr, count);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < count; ++t) {
        threads.emplace_back([&, t] {
            threadIdx = uint3{t % block.x, t / block.x % block.y, t / block.x / block.y};
            for (unsigned z = 0; z < grid.z; ++z)
                for (unsigned y = 0; y < grid.y; ++y)
                    for (unsigned x = 0; x < grid.x; ++x) {
                        blockIdx = uint3{x, y, z};
                        barriers = 0;
                        body();
                        passed[t] = barriers;
                        pthread_barrier_wait(&barrier);
                        if (passed[t] != passed[0]) uneven = 1;
                        pthread_barrier_wait(&barrier);
                    }
        });
    }
    for (auto &thread : threads) thread.join();
    pthread_barrier_destroy(&barrier);
    return uneven + 2 * outside;
}
