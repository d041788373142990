// The part of CUDA's header that generated code uses, on the host.
#pragma once
struct __half {
    _Float16 value;
};
static inline float __half2float(__half h) { return (float)h.value; }
static inline __half __float2half_rn(float x) { return __half{(_Float16)x}; }
