// A flat ECP5 netlist as tables, run cycle by cycle in the place of a verilated model, with a count of switches a net.
// Nothing is compiled for a netlist, so that one of 50,000 cells is there in seconds; one evaluation a cycle settles all.
// Contract: one clock, its rising edge; the words of `kNetlist` are as accel/fpga/sim/tables.py writes them.
#ifndef RELAY_HW_NETLIST_MODEL_H
#define RELAY_HW_NETLIST_MODEL_H

#include <bit>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace switching {

using Net = uint32_t;

// The words of a netlist, one after the other.
class Words {
public:
    explicit Words(const uint32_t* at) : at_{at} {}
    uint32_t next() { return *at_++; }
    template <class Target>
    void fill(Target& target) {
        for (auto& each : target) each = next();
    }

private:
    const uint32_t* at_;
};

struct Lut {
    Net in[4], out;
    uint32_t init;
};

// Two bits of a sum. `alone`: bits whose sum and carry do not mix.
struct Carry {
    Net carry, in[2][4], sum[2], out;
    uint32_t init[2], alone[2];
};

// 16 words of four bits: written at an edge, read at once.
struct Table {
    Net write_address[4], data[4], write, read_address[4], out[4];
    uint32_t invert;
    uint64_t words;
};

// Operands with a register have `has_register`; else they are the pins.
struct Operand {
    Net pins[18], enable, reset;
    uint32_t has_register, is_signed, value, before;
};

struct Multiplier {
    Operand operand[2];
    Net out[36];
};

struct FlipFlop {
    Net data, enable, reset, out;
    // bits: enable is low active, reset is low active, enable goes before reset, value after a reset
    uint32_t flags;
};

enum WriteMode : uint32_t { kKeep, kThrough, kBefore };

// `width` 0: no port. `is_read`: whether something reads its data.
struct Port {
    uint32_t width, can_read, is_read, mode;
    Net enable, write, reset, address[14], data[36], out[36];
    uint64_t value, reads, idle, writes;
};

struct Ram {
    Port port[2];
    std::vector<uint16_t> units;
};

class Netlist {
public:
    explicit Netlist(const uint32_t* words) {
        Words in{words};
        values_.resize(in.next());
        switches_.resize(values_.size());
        values_[1] = 1;
        read(luts_, in, [&](Lut& it) { in.fill(it.in); it.out = in.next(); it.init = in.next(); });
        read(carries_, in, [&](Carry& it) {
            it.carry = in.next();
            in.fill(it.in[0]); in.fill(it.in[1]); in.fill(it.sum);
            it.out = in.next();
            in.fill(it.init); in.fill(it.alone);
        });
        read(tables_, in, [&](Table& it) {
            in.fill(it.write_address); in.fill(it.data);
            it.write = in.next();
            in.fill(it.read_address); in.fill(it.out);
            it.invert = in.next();
            it.words = 0;
        });
        read(multipliers_, in, [&](Multiplier& it) {
            for (Operand& each : it.operand) {
                in.fill(each.pins);
                each.enable = in.next(); each.reset = in.next();
                each.has_register = in.next(); each.is_signed = in.next();
                each.value = each.before = 0;
            }
            in.fill(it.out);
        });
        read(flip_flops_, in, [&](FlipFlop& it) {
            it.data = in.next(); it.enable = in.next(); it.reset = in.next(); it.out = in.next(); it.flags = in.next();
            values_[it.out] = it.flags >> 3 & 1;
        });
        read(rams_, in, [&](Ram& it) {
            for (Port& each : it.port) {
                each.width = in.next(); each.can_read = in.next(); each.is_read = in.next(); each.mode = in.next();
                each.enable = in.next(); each.write = in.next(); each.reset = in.next();
                in.fill(each.address); in.fill(each.data); in.fill(each.out);
                each.value = each.reads = each.idle = each.writes = 0;
            }
            it.units.resize(2048);
        });
        next_.resize(flip_flops_.size());
        order_.resize(in.next());
        in.fill(order_);
    }

    void begin() {
        std::fill(switches_.begin(), switches_.end(), 0);
        for (Ram& ram : rams_)
            for (Port& port : ram.port) port.reads = port.idle = port.writes = 0;
        partials_ = cycles_ = 0;
        on_ = 1;
    }

    void end() { on_ = 0; }
    bool is_counting() const { return on_; }
    uint8_t get(Net net) const { return values_[net]; }

    // A net outside of the netlist; what it does counts.
    void set(Net net, uint8_t value) {
        switches_[net] += (values_[net] ^ value) & on_;
        values_[net] = value;
    }

    // All that follows from registers and inputs, once a cycle.
    void settle() {
        for (const uint32_t each : order_) {
            const uint32_t place = each & 0x0FFFFFFF;
            switch (each >> 28) {
                case 0: look_up(luts_[place]); break;
                case 1: add(carries_[place]); break;
                case 2: look_up(tables_[place]); break;
                default: multiply(multipliers_[place]);
            }
        }
    }

    // The rising edge: every register takes what is settled, then shows it.
    void clock() {
        cycles_ += on_;
        for (size_t k = 0; k < flip_flops_.size(); ++k) next_[k] = after(flip_flops_[k]);
        for (Ram& ram : rams_) clock(ram);
        for (Table& table : tables_)
            if (values_[table.write] ^ table.invert) write(table);
        for (Multiplier& each : multipliers_)
            for (Operand& operand : each.operand) clock(operand);
        for (size_t k = 0; k < flip_flops_.size(); ++k) set(flip_flops_[k].out, next_[k]);
        for (Ram& ram : rams_)
            for (Port& port : ram.port)
                if (port.is_read)
                    for (uint32_t k = 0; k < port.width; ++k) set(port.out[k], port.value >> k & 1);
    }

    // Cycles, changed bits in multipliers, three counts of each RAM's ports, switches of each net.
    bool save(const char* path) const {
        std::vector<uint64_t> found{cycles_, partials_};
        for (const Ram& ram : rams_)
            for (const Port& port : ram.port) found.insert(found.end(), {port.reads, port.idle, port.writes});
        found.insert(found.end(), switches_.begin(), switches_.end());
        FILE* file = std::fopen(path, "wb");
        if (!file) return false;
        const bool written = std::fwrite(found.data(), sizeof(uint64_t), found.size(), file) == found.size();
        return std::fclose(file) == 0 && written;
    }

private:
    template <class Cell, class Read>
    static void read(std::vector<Cell>& cells, Words& in, Read each) {
        cells.resize(in.next());
        for (Cell& cell : cells) each(cell);
    }

    template <size_t N>
    uint64_t gather(const Net (&nets)[N], uint32_t count = N) const {
        uint64_t found = 0;
        for (uint32_t k = 0; k < count; ++k) found |= uint64_t{values_[nets[k]]} << k;
        return found;
    }

    uint8_t looked_up(const Net (&in)[4], uint32_t init) const { return init >> gather(in) & 1; }

    void look_up(const Lut& cell) { set(cell.out, looked_up(cell.in, cell.init)); }

    void look_up(const Table& cell) {
        const uint64_t found = cell.words >> (4 * gather(cell.read_address));
        for (uint32_t k = 0; k < 4; ++k) set(cell.out[k], found >> k & 1);
    }

    void add(const Carry& cell) {
        uint8_t carry = values_[cell.carry];
        for (uint32_t k = 0; k < 2; ++k) {
            const uint8_t passes = looked_up(cell.in[k], cell.init[k]);
            const uint8_t made = cell.init[k] >> (gather(cell.in[k]) & 3) & 1;
            set(cell.sum[k], passes ^ (cell.alone[k] ? 0 : carry));
            carry = passes ? carry : cell.alone[k] ? 0 : made;
        }
        set(cell.out, carry);
    }

    static int64_t number(const Operand& operand) {
        const int64_t sign = operand.is_signed ? operand.value & 0x20000 : 0;
        return int64_t{operand.value} - 2 * sign;
    }

    void multiply(Multiplier& cell) {
        Operand &a = cell.operand[0], &b = cell.operand[1];
        for (Operand& each : cell.operand)
            if (!each.has_register) each.value = gather(each.pins);
        if (a.value == a.before && b.value == b.before) return;
        const int both = std::popcount(a.value & a.before) * std::popcount(b.value & b.before);
        const int now = std::popcount(a.value) * std::popcount(b.value);
        const int then = std::popcount(a.before) * std::popcount(b.before);
        partials_ += on_ ? now + then - 2 * both : 0;
        a.before = a.value;
        b.before = b.value;
        const uint64_t product = number(a) * number(b);
        for (uint32_t k = 0; k < 36; ++k) set(cell.out[k], product >> k & 1);
    }

    uint8_t after(const FlipFlop& cell) const {
        const bool enable = values_[cell.enable] ^ (cell.flags & 1);
        const bool reset = values_[cell.reset] ^ (cell.flags >> 1 & 1);
        const bool enable_first = cell.flags >> 2 & 1;
        if (reset && (enable || !enable_first)) return cell.flags >> 3 & 1;
        return values_[enable ? cell.data : cell.out];
    }

    void write(Table& cell) {
        const uint32_t place = 4 * gather(cell.write_address);
        cell.words = (cell.words & ~(uint64_t{15} << place)) | gather(cell.data) << place;
    }

    void clock(Operand& cell) {
        if (!cell.has_register) return;
        if (values_[cell.reset]) cell.value = 0;
        else if (values_[cell.enable]) cell.value = gather(cell.pins);
    }

    // Units of nine bits from the address on: how many, the first, the place in it of fewer than nine bits.
    static uint32_t count(const Port& port) { return port.width == 36 ? 4 : port.width == 18 ? 2 : 1; }
    static uint64_t ones(uint32_t bits) { return (uint64_t{1} << bits) - 1; }

    void clock(Ram& ram) {
        for (Port& port : ram.port) {
            if (!port.width || !values_[port.enable]) continue;
            const uint32_t address = gather(port.address), units = count(port);
            const uint32_t first = (address >> 3) & ~(units - 1);
            const uint32_t shift = port.width < 9 ? (address & 7) & ~(port.width - 1) : 0;
            const bool writes = values_[port.write], reset = values_[port.reset];
            const uint64_t before = found(ram, first, units, shift, port.width);
            if (writes && !reset) put(ram, port, address, first, shift);
            if (!writes && port.can_read) (port.is_read && !reset ? port.reads : port.idle) += on_;
            if (reset) port.value = 0;
            else if (!writes || port.mode == kBefore) port.value = before;
            else if (port.mode == kThrough) port.value = found(ram, first, units, shift, port.width);
        }
    }

    static uint64_t found(const Ram& ram, uint32_t first, uint32_t units, uint32_t shift, uint32_t width) {
        uint64_t all = 0;
        for (uint32_t k = 0; k < units; ++k) all |= uint64_t{ram.units[first + k]} << (9 * k);
        return all >> shift & ones(width);
    }

    // Ports of 18 and 36 bits have an enable a unit in the place of low address bits.
    void put(Ram& ram, Port& port, uint32_t address, uint32_t first, uint32_t shift) {
        const uint32_t units = count(port);
        const uint32_t chosen = units > 1 ? address & ones(units) : 1;
        port.writes += chosen ? on_ : 0;
        if (!chosen) return;
        const uint64_t data = gather(port.data, port.width);
        for (uint32_t k = 0; k < units; ++k) {
            if (!(chosen >> k & 1)) continue;
            const uint16_t mask = port.width < 9 ? ones(port.width) << shift : 0x1FF;
            const uint16_t value = port.width < 9 ? data << shift : data >> (9 * k);
            ram.units[first + k] = (ram.units[first + k] & ~mask) | (value & mask);
        }
    }

    std::vector<uint8_t> values_, next_;
    std::vector<uint64_t> switches_;
    std::vector<Lut> luts_;
    std::vector<Carry> carries_;
    std::vector<Table> tables_;
    std::vector<Multiplier> multipliers_;
    std::vector<FlipFlop> flip_flops_;
    std::vector<Ram> rams_;
    std::vector<uint32_t> order_;
    uint64_t partials_ = 0, cycles_ = 0;
    uint8_t on_ = 0;
};

}  // namespace switching

#endif
