// The part of CUDA's header that generated code uses, on the host.
#pragma once
#include <stdint.h>
#include <string.h>
struct __nv_bfloat16 {
    uint16_t bits;
};
static inline float __bfloat162float(__nv_bfloat16 h) {
    uint32_t bits = (uint32_t)h.bits << 16;
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
static inline __nv_bfloat16 __float2bfloat16_rn(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if (x != x) return __nv_bfloat16{0x7fff};
    return __nv_bfloat16{(uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
