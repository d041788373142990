// The part of CUDA's header that generated code uses, on the host: e4m3, rounded by search through all its values.
#pragma once
#include <math.h>
#include <stdint.h>
struct __nv_fp8_e4m3 {
    uint8_t bits;
    __nv_fp8_e4m3() = default;
    static float size(int code) {
        return code >> 3 ? ldexpf(1 + (code & 7) / 8.0f, (code >> 3) - 7) : ldexpf((float)(code & 7), -9);
    }
    explicit __nv_fp8_e4m3(float x) {
        int best = 0;
        for (int code = 1; code < 127; ++code) {
            float now = fabsf(fabsf(x) - size(code)), before = fabsf(fabsf(x) - size(best));
            if (now < before || (now == before && !(code & 1))) best = code;
        }
        bits = x != x ? 127 : (uint8_t)(best | (signbit(x) ? 128 : 0));
    }
    explicit operator float() const {
        float value = (bits & 127) == 127 ? NAN : size(bits & 127);
        return bits & 128 ? -value : value;
    }
};
