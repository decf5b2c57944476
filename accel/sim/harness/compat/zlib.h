// The two calls of zlib that Verilator's FST writer makes, so that waves need no system package.
// compress2 writes a zlib stream of stored blocks, which every reader accepts.
#ifndef VTA_COMPAT_ZLIB_H_
#define VTA_COMPAT_ZLIB_H_

#include <cstdint>
#include <cstring>

typedef unsigned char Bytef;
typedef unsigned long uLong;
typedef unsigned long uLongf;
#define Z_OK 0
#define Z_BUF_ERROR (-5)

static inline uLong compressBound(uLong size) { return size + 5 * (size / 65535 + 1) + 6; }

static inline int compress2(Bytef* out, uLongf* out_size, const Bytef* in, uLong size, int) {
    if (*out_size < compressBound(size)) return Z_BUF_ERROR;
    Bytef* p = out;
    *p++ = 0x78;
    *p++ = 0x01;
    uint32_t low = 1, high = 0;
    uLong at = 0;
    do {
        const uLong n = size - at < 65535 ? size - at : 65535;
        *p++ = at + n == size;
        *p++ = static_cast<Bytef>(n);
        *p++ = static_cast<Bytef>(n >> 8);
        *p++ = static_cast<Bytef>(~n);
        *p++ = static_cast<Bytef>(~n >> 8);
        std::memcpy(p, in + at, n);
        p += n;
        for (uLong i = 0; i < n; ++i) {
            low = (low + in[at + i]) % 65521;
            high = (high + low) % 65521;
        }
        at += n;
    } while (at < size);
    const uint32_t sum = high << 16 | low;
    for (int shift = 24; shift >= 0; shift -= 8) *p++ = static_cast<Bytef>(sum >> shift);
    *out_size = static_cast<uLongf>(p - out);
    return Z_OK;
}

#endif  // VTA_COMPAT_ZLIB_H_
