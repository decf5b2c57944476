// The two calls of the LZ4 library that Verilator's FST writer makes, so that waves need no system package.
// LZ4_compress_default writes one LZ4 block: greedy matches through a hash of four bytes.
#ifndef VTA_COMPAT_LZ4_H_
#define VTA_COMPAT_LZ4_H_

#include <cstdint>
#include <cstring>
#include <vector>

static inline int LZ4_compressBound(int size) { return size + size / 255 + 16; }

namespace vta_compat {

inline uint32_t load32(const uint8_t* p) {
    uint32_t value;
    std::memcpy(&value, p, 4);
    return value;
}

inline uint8_t* put_length(uint8_t* out, int rest) {
    for (; rest >= 255; rest -= 255) *out++ = 255;
    *out++ = static_cast<uint8_t>(rest);
    return out;
}

// One sequence: literals, then (unless it is the last one) a match of at least four bytes at `offset` back.
inline uint8_t* put_sequence(uint8_t* out, const uint8_t* literals, int count, int offset, int match) {
    uint8_t* token = out++;
    *token = static_cast<uint8_t>((count < 15 ? count : 15) << 4);
    if (count >= 15) out = put_length(out, count - 15);
    std::memcpy(out, literals, count);
    out += count;
    if (!match) return out;
    *out++ = static_cast<uint8_t>(offset);
    *out++ = static_cast<uint8_t>(offset >> 8);
    *token |= static_cast<uint8_t>(match - 4 < 15 ? match - 4 : 15);
    return match - 4 >= 15 ? put_length(out, match - 4 - 15) : out;
}

}  // namespace vta_compat

static inline int LZ4_compress_default(const char* from, char* to, int size, int capacity) {
    using namespace vta_compat;
    if (capacity < LZ4_compressBound(size)) return 0;
    const uint8_t* in = reinterpret_cast<const uint8_t*>(from);
    uint8_t* out = reinterpret_cast<uint8_t*>(to);
    std::vector<int> seen(1 << 14, -1);
    int anchor = 0;
    // The format wants the last five bytes as literals and no match to begin in the last twelve.
    for (int i = 0; i + 12 < size;) {
        const uint32_t word = load32(in + i);
        int& slot = seen[(word * 2654435761u) >> 18];
        const int before = slot;
        slot = i;
        if (before < 0 || i - before > 65535 || load32(in + before) != word) {
            ++i;
            continue;
        }
        int match = 4;
        while (i + match < size - 5 && in[before + match] == in[i + match]) ++match;
        out = put_sequence(out, in + anchor, i - anchor, i - before, match);
        i += match;
        anchor = i;
    }
    out = put_sequence(out, in + anchor, size - anchor, 0, 0);
    return static_cast<int>(out - reinterpret_cast<uint8_t*>(to));
}

#endif  // VTA_COMPAT_LZ4_H_
