// Arithmetic of compiled Relay programs where C's own differs from the operators' reference semantics.
#ifndef RHW_NUMBERS_H
#define RHW_NUMBERS_H

#include "native.h"

static RHW_NOINLINE RHW_NORETURN void rhw_divided_by_zero(rhw_run *r, const char *name) {
    snprintf(r->error, sizeof r->error, "the divisor of %s must not be 0 in integers", name);
    rhw_fail(r, r->error);
}

/* Division of integers: zero is refused, and the least number by -1 is itself. */
#define RHW_SIGNED(NAME, T, U, BITS) \
    static inline T rhw_divide_##NAME(rhw_run *r, T a, T b, const char *name) { \
        if (RHW_RARE(b == 0)) rhw_divided_by_zero(r, name); \
        return b == -1 ? (T)(0 - (U)a) : (T)(a / b); \
    } \
    static inline T rhw_floor_divide_##NAME(rhw_run *r, T a, T b, const char *name) { \
        const T q = rhw_divide_##NAME(r, a, b, name); \
        return b != -1 && a % b != 0 && (a < 0) != (b < 0) ? (T)(q - 1) : q; \
    } \
    static inline T rhw_mod_##NAME(rhw_run *r, T a, T b, const char *name) { \
        if (RHW_RARE(b == 0)) rhw_divided_by_zero(r, name); \
        return b == -1 ? 0 : (T)(a % b); \
    } \
    static inline T rhw_floor_mod_##NAME(rhw_run *r, T a, T b, const char *name) { \
        const T m = rhw_mod_##NAME(r, a, b, name); \
        return m != 0 && (m < 0) != (b < 0) ? (T)(m + b) : m; \
    } \
    static inline T rhw_left_shift_##NAME(T a, T b) { return b >= BITS ? 0 : b <= 0 ? a : (T)((U)a << b); } \
    static inline T rhw_right_shift_##NAME(T a, T b) { return b >= BITS ? (a < 0 ? -1 : 0) : b <= 0 ? a : (T)(a >> b); }
#define RHW_UNSIGNED(NAME, T, BITS) \
    static inline T rhw_divide_##NAME(rhw_run *r, T a, T b, const char *name) { \
        if (RHW_RARE(b == 0)) rhw_divided_by_zero(r, name); \
        return (T)(a / b); \
    } \
    static inline T rhw_floor_divide_##NAME(rhw_run *r, T a, T b, const char *name) { return rhw_divide_##NAME(r, a, b, name); } \
    static inline T rhw_mod_##NAME(rhw_run *r, T a, T b, const char *name) { \
        if (RHW_RARE(b == 0)) rhw_divided_by_zero(r, name); \
        return (T)(a % b); \
    } \
    static inline T rhw_floor_mod_##NAME(rhw_run *r, T a, T b, const char *name) { return rhw_mod_##NAME(r, a, b, name); } \
    static inline T rhw_left_shift_##NAME(T a, T b) { return b >= BITS ? 0 : (T)(a << b); } \
    static inline T rhw_right_shift_##NAME(T a, T b) { return b >= BITS ? 0 : (T)(a >> b); }
RHW_SIGNED(int8, int8_t, uint8_t, 8)
RHW_SIGNED(int16, int16_t, uint16_t, 16)
RHW_SIGNED(int32, int32_t, uint32_t, 32)
RHW_SIGNED(int64, int64_t, uint64_t, 64)
RHW_UNSIGNED(uint8, uint8_t, 8)
RHW_UNSIGNED(uint16, uint16_t, 16)
RHW_UNSIGNED(uint32, uint32_t, 32)
RHW_UNSIGNED(uint64, uint64_t, 64)

#define RHW_REAL(NAME, T, SUFFIX) \
    static inline T rhw_maximum_##NAME(T a, T b) { return a >= b || a != a ? a : b; } \
    static inline T rhw_minimum_##NAME(T a, T b) { return a <= b || a != a ? a : b; } \
    static inline T rhw_sign_##NAME(T a) { return a != a ? a : (T)((a > 0) - (a < 0)); } \
    static inline T rhw_floor_mod_##NAME(T a, T b) { \
        const T m = fmod##SUFFIX(a, b); \
        return b == 0 ? m : m != 0 ? ((m < 0) != (b < 0) ? m + b : m) : copysign##SUFFIX(0, b); \
    }
RHW_REAL(float32, float, f)
RHW_REAL(float64, double, )

/* The integer that stands for a float, at `scale` a step. */
static inline int64_t rhw_quantized(float x, float scale, int64_t zero, int64_t low, int64_t high, int half_even) {
    const float quotient = x / scale;
    const double bound = 2.0 * ((double)high - (double)low);
    float whole = half_even ? rintf(quotient) : truncf(quotient);
    double value;
    int64_t shifted;
    if (!half_even && fabsf(quotient - whole) >= 0.5f) whole += quotient > 0 ? 1.0f : -1.0f;
    value = whole != whole ? 0.0 : whole;
    value = value < -bound ? -bound : value > bound ? bound : value;
    shifted = (int64_t)value + zero;
    return shifted < low ? low : shifted > high ? high : shifted;
}

/* A place along an axis of `size`: outside it is clipped, or wrapped. */
static inline int64_t rhw_place(int64_t index, int64_t size, int wraps) {
    if (wraps) {
        index %= size;
        return index < 0 ? index + size : index;
    }
    return index < 0 ? 0 : index >= size ? size - 1 : index;
}

/* exp and tanh of a float, by the same additions and multiplications everywhere: errors of at most 2 units in the last place. */
static inline float rhw_power_of_two(int32_t exponent) {
    const uint32_t bits = (uint32_t)(exponent + 127) << 23;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline float rhw_expf(float x) {
    const float low = x < -104.0f ? -104.0f : x, in = low > 89.0f ? 89.0f : low;
    const float scaled = in * 1.44269504088896341f;
    const int32_t n = (int32_t)(scaled + (scaled < 0 ? -0.5f : 0.5f)), half = n / 2;
    const float f = (in - (float)n * 0.693359375f) - (float)n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * f + 1.3981999507e-3f;
    p = p * f + 8.3334519073e-3f;
    p = p * f + 4.1665795894e-2f;
    p = p * f + 1.6666665459e-1f;
    p = p * f + 5.0000001201e-1f;
    p = (p * f) * f + f + 1.0f;
    p = p * rhw_power_of_two(half) * rhw_power_of_two(n - half);
    return x != x ? x : p;
}

static inline float rhw_tanhf(float x) {
    const float a = x < 0 ? -x : x, s = x * x;
    const float wide = 1.0f - 2.0f / (rhw_expf(a + a) + 1.0f);
    float p = -5.70498872745e-3f;
    p = p * s + 2.06390887954e-2f;
    p = p * s + -5.37397155531e-2f;
    p = p * s + 1.33314422036e-1f;
    p = p * s + -3.33332819422e-1f;
    p = (p * s) * x + x;
    return a < 0.625f ? p : x < 0 ? -wide : wide;
}

/* Products of a row with rows or columns of a matrix, in an order of additions that depends on the sizes only. */
#define RHW_LANES 16
#define RHW_PRODUCTS(NAME, T) \
    static inline T rhw_sum_##NAME(const T *lanes) { \
        T part[4]; \
        int k; \
        for (k = 0; k < 4; k++) part[k] = (lanes[k] + lanes[k + 4]) + (lanes[k + 8] + lanes[k + 12]); \
        return (part[0] + part[1]) + (part[2] + part[3]); \
    } \
    static RHW_NOINLINE void rhw_dots_##NAME(const T *restrict a, const T *restrict b, ptrdiff_t step, T *restrict out, ptrdiff_t columns, ptrdiff_t depth) { \
        ptrdiff_t j, k; \
        int l; \
        for (j = 0; j < columns; j++, b += step) { \
            T lanes[RHW_LANES] = {0}; \
            for (k = 0; k + RHW_LANES <= depth; k += RHW_LANES) \
                for (l = 0; l < RHW_LANES; l++) lanes[l] += a[k + l] * b[k + l]; \
            for (l = 0; k + l < depth; l++) lanes[l] += a[k + l] * b[k + l]; \
            out[j] = rhw_sum_##NAME(lanes); \
        } \
    } \
    static RHW_NOINLINE void rhw_rows_##NAME(const T *restrict a, ptrdiff_t a_step, const T *restrict b, ptrdiff_t step, T *restrict out, ptrdiff_t columns, ptrdiff_t depth) { \
        ptrdiff_t j, k; \
        for (j = 0; j < columns; j++) out[j] = 0; \
        for (k = 0; k < depth; k++) { \
            const T x = a[k * a_step]; \
            for (j = 0; j < columns; j++) out[j] += x * b[k * step + j]; \
        } \
    }
RHW_PRODUCTS(float32, float)
RHW_PRODUCTS(float64, double)

#endif
