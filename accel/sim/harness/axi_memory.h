// AXI4 memory behind the core: in-order bursts on the caller's window, fixed latency, bounded outstanding bursts.
// Edge t: a burst accepted at t presents its first R beat for edge t+latency at the earliest, one beat an edge; B comes
// latency edges after the last W beat, or after its address if that is later. With an SDRAM, it says when (sdram.h).
// Ready and valid depend on past edges only, but for kDataShown. Checks AXI rules as it goes. A reset makes a new one.
#ifndef VTA_AXI_MEMORY_H_
#define VTA_AXI_MEMORY_H_

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "sdram.h"

namespace vta {

// When a memory without SDRAM takes addresses and data of writes. Mirrored by WriteOrder in accel/sim/dram_timing.py.
enum WriteOrder : uint32_t { kAddressFirst, kDataShown, kDataFirst, kAny };

// Mirrored field by field in accel/sim/rtl_model.py.
struct Settings {
    uint8_t* window;
    uint64_t window_bytes;
    uint64_t window_base;
    uint64_t stall_seed;     // 0: no stalls
    uint64_t power_seed;     // 0: as the build has it; draws what a build with --x-initial unique begins with
    uint64_t error_address;  // bus address whose beat is answered with error_answer
    uint32_t error_answer;   // kOkay: none
    uint32_t silent;         // a bit for each channel that does nothing
    uint32_t latency;
    uint32_t read_outstanding;   // of the memory
    uint32_t write_outstanding;  // of the memory
    uint32_t core_reads;         // what the core promises never to exceed
    uint32_t core_writes;
    uint32_t burst_beats;
    uint32_t write_order;
    const char* arguments;  // what a command line would give the model, words apart by spaces
    uint32_t settle;  // evaluate the model with the clock low in every cycle
    SdramSettings sdram;
};

// The values of RRESP and BRESP, and an answer with OKAY and an ID that no request has. Mirrored by Answer in
// accel/sim/rtl_model.py.
enum Answer : uint8_t { kOkay, kWrongId, kSlaveError, kDecodeError };

// Mirrored by Channel in accel/sim/rtl_model.py.
enum Channel { AR, R, AW, W, B };

class Random {
public:
    explicit Random(uint64_t seed) : state_{seed * 0x9E3779B97F4A7C15ull + 1} { next(); }
    uint32_t next() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return static_cast<uint32_t>(state_ >> 32);
    }
    bool below(uint32_t threshold) { return next() < threshold; }

private:
    uint64_t state_;
};

// First broken rule wins; the run stops with its text.
class Report {
public:
    bool failed() const { return !text_.empty(); }
    const char* text() const { return text_.c_str(); }
    void clear() { text_.clear(); }
    __attribute__((cold, noinline, format(printf, 3, 4))) void fail(uint64_t cycle, const char* format, ...) {
        if (failed()) return;
        char body[256];
        va_list args;
        va_start(args, format);
        vsnprintf(body, sizeof body, format, args);
        va_end(args);
        char whole[320];
        snprintf(whole, sizeof whole, "%s (clock cycle %llu)", body, static_cast<unsigned long long>(cycle));
        text_ = whole;
    }

private:
    std::string text_;
};

// Power-of-two ring of bursts in flight.
struct Burst {
    uint64_t ready_at;
    uint64_t address;
    uint32_t beats;
    Answer answer;
};

class Ring {
public:
    explicit Ring(uint32_t least) {
        uint32_t size = 1;
        while (size < least + 1) size *= 2;
        slots_.resize(size);
        mask_ = size - 1;
    }
    uint32_t size() const { return tail_ - head_; }
    bool empty() const { return tail_ == head_; }
    Burst& front() { return slots_[head_ & mask_]; }
    Burst& at(uint32_t sequence) { return slots_[sequence & mask_]; }
    uint32_t tail() const { return tail_; }
    void push(const Burst& burst) { slots_[tail_++ & mask_] = burst; }
    void pop() { ++head_; }
    void clear() { head_ = tail_ = 0; }

private:
    std::vector<Burst> slots_;
    uint32_t mask_, head_ = 0, tail_ = 0;
};

struct Address {
    uint64_t address;
    uint32_t len, size, burst, id, lock, cache, prot;
    bool operator==(const Address&) const = default;
};

// `Top` is the verilated model with the ports of vta_top; BUS is its data width in bytes.
template <class Top, uint32_t BUS>
class AxiMemory {
public:
    AxiMemory(Top& top, const Settings& settings, Report& report)
        : top_{top}, s_{settings}, report_{report}, reads_{std::max(settings.read_outstanding, settings.core_reads)},
          writes_{std::max(settings.write_outstanding, settings.core_writes)}, random_{settings.stall_seed},
          sdram_{settings.sdram} {
        // One probability a channel, drawn from the seed, so that seeds differ in kind and not only in order.
        static const uint32_t kinds[] = {0u, 0x20000000u, 0x80000000u, 0xE0000000u};
        for (uint32_t& threshold : stall_) threshold = settings.stall_seed ? kinds[random_.next() & 3] : 0;
        top_.m_axi_rvalid = top_.m_axi_bvalid = 0;
        top_.m_axi_rid = top_.m_axi_bid = 0;
        top_.m_axi_arready = top_.m_axi_awready = top_.m_axi_wready = 0;
    }

    // Launches repeat to the cycle: what refreshes and open rows do counts from the first request behind this.
    void restart() {
        if (!in_flight()) sdram_.restart();
    }

    Settings& settings() { return s_; }
    void silence(uint32_t channels) {
        s_.silent = channels;
        quiet_ = false;
    }
    uint32_t in_flight() const { return reads_.size() + writes_.size() + !early_.empty(); }

    // Outputs of the core have settled for edge `t`: take the handshakes of that edge.
    void sample(uint64_t t) {
        if (__builtin_expect(!(top_.m_axi_arvalid | top_.m_axi_awvalid | top_.m_axi_wvalid) && !in_flight() && quiet_, 1))
            return;
        active_ = true;
        if (sdram_.present()) sdram_.decide(t);
        sample_read(t);
        sample_write(t);
    }

    // Edge `t` has passed: drive the inputs for edge t + 1.
    void drive(uint64_t t) {
        if (!active_) return;
        active_ = false;
        drive_read(t + 1);
        drive_write(t + 1);
        quiet_ = !s_.stall_seed && !ar_held_ && !aw_held_ && !w_held_ && !in_flight() && !top_.m_axi_rvalid
                 && !top_.m_axi_bvalid && top_.m_axi_arready && top_.m_axi_awready == takes_address_first()
                 && top_.m_axi_wready == takes_data_early();
    }

private:
    // Of what does not wait: an address before its data, data before their address.
    bool takes_address_first() const {
        return sdram_.present() || s_.write_order == kAddressFirst || s_.write_order == kAny;
    }
    bool takes_data_early() const { return sdram_.present() || s_.write_order == kDataFirst || s_.write_order == kAny; }

    bool stalled(Channel channel) {
        return (s_.silent >> channel & 1) || (s_.stall_seed && random_.below(stall_[channel]));
    }

    void sample_read(uint64_t t) {
        const bool taken = top_.m_axi_rvalid && top_.m_axi_rready;
        if (sdram_.present()) sdram_.show(t, taken);
        if (taken) {
            r_taken_ = true;
            if (++read_beat_ == reads_.front().beats) {
                reads_.pop();
                read_beat_ = 0;
            }
        }
        const bool valid = top_.m_axi_arvalid;
        if (!valid) {
            if (ar_held_) report_.fail(t, "AR: valid must stay high until ready");
            ar_held_ = false;
            return;
        }
        const Address now{top_.m_axi_araddr, top_.m_axi_arlen,  top_.m_axi_arsize,  top_.m_axi_arburst,
                          top_.m_axi_arid,   top_.m_axi_arlock, top_.m_axi_arcache, top_.m_axi_arprot};
        if (ar_held_ && !(now == ar_)) report_.fail(t, "AR: address must be stable while it waits");
        ar_ = now;
        ar_held_ = !top_.m_axi_arready;
        if (ar_held_) return;
        check(t, "AR", now, reads_.size() + 1, s_.core_reads);
        const uint64_t extra = s_.stall_seed ? random_.next() % (s_.latency + 1) : 0;
        reads_.push({t + s_.latency + extra, now.address, now.len + 1, kOkay});
        if (sdram_.present()) sdram_.read(t, now.address - s_.window_base, now.len + 1);
    }

    void sample_write(uint64_t t) {
        if (top_.m_axi_bvalid && top_.m_axi_bready) {
            b_taken_ = true;
            if (sdram_.present()) sdram_.answered();
            writes_.pop();
        }
        if (top_.m_axi_wvalid) {
            if (w_held_) check_w_stable(t);
            w_held_ = !top_.m_axi_wready;
            if (w_held_) {
                hold_w();
            } else {
                if (sdram_.present()) sdram_.data();
                take_w(t);
            }
        } else {
            if (w_held_) report_.fail(t, "W: valid must stay high until ready");
            w_held_ = false;
        }
        if (!top_.m_axi_awvalid) {
            if (aw_held_) report_.fail(t, "AW: valid must stay high until ready");
            aw_held_ = false;
            return;
        }
        const Address now{top_.m_axi_awaddr, top_.m_axi_awlen,  top_.m_axi_awsize,  top_.m_axi_awburst,
                          top_.m_axi_awid,   top_.m_axi_awlock, top_.m_axi_awcache, top_.m_axi_awprot};
        if (aw_held_ && !(now == aw_)) report_.fail(t, "AW: address must be stable while it waits");
        aw_ = now;
        aw_held_ = !top_.m_axi_awready;
        if (aw_held_) return;
        check(t, "AW", now, writes_.size() + 1, s_.core_writes);
        writes_.push({0, now.address, now.len + 1, kOkay});
        if (sdram_.present()) sdram_.write(t, now.address - s_.window_base, now.len + 1);
        while (!early_.empty() && has_address()) {
            put(t, early_.front().data, early_.front().last);
            early_.pop_front();
        }
    }

    // The address of the next W beat was taken.
    bool has_address() const { return written_ != writes_.tail(); }

    void take_w(uint64_t t) {
        const uint64_t strobes = top_.m_axi_wstrb;
        const uint64_t all = BUS == 64 ? ~0ull : (1ull << BUS) - 1;
        if (strobes != all) report_.fail(t, "W: strobes must all be set, not %#llx", (unsigned long long)strobes);
        if (has_address()) return put(t, &top_.m_axi_wdata, top_.m_axi_wlast);
        early_.push_back({{}, bool(top_.m_axi_wlast)});
        std::memcpy(early_.back().data, &top_.m_axi_wdata, BUS);
    }

    // Writes a beat of the burst whose data come next.
    void put(uint64_t t, const void* data, bool says_last) {
        Burst& burst = writes_.at(written_);
        const uint64_t address = burst.address + uint64_t{write_beat_} * BUS;
        if (inside(address)) std::memcpy(s_.window + (address - s_.window_base), data, BUS);
        else burst.answer = kDecodeError;
        if (hits_error(address)) burst.answer = Answer(s_.error_answer);
        const bool last = ++write_beat_ == burst.beats;
        if (last != says_last)
            report_.fail(t, "W: last must be %d on beat %u of %u", last, write_beat_, burst.beats);
        if (!last) return;
        const uint64_t extra = s_.stall_seed ? random_.next() % (s_.latency + 1) : 0;
        burst.ready_at = t + s_.latency + extra;
        write_beat_ = 0;
        ++written_;
    }

    void drive_read(uint64_t next) {
        const bool room = sdram_.present() ? sdram_.read_ready() : reads_.size() < s_.read_outstanding;
        top_.m_axi_arready = room && !stalled(AR);
        if (top_.m_axi_rvalid && !r_taken_) return;
        r_taken_ = false;
        const bool there = sdram_.present() ? sdram_.data_valid()
                                            : !reads_.empty() && next >= reads_.front().ready_at;
        const bool valid = there && !stalled(R);
        top_.m_axi_rvalid = valid;
        if (!valid) return;
        const Burst& burst = reads_.front();
        const uint64_t address = burst.address + uint64_t{read_beat_} * BUS;
        Answer answer = kOkay;
        if (inside(address)) {
            std::memcpy(&top_.m_axi_rdata, s_.window + (address - s_.window_base), BUS);
        } else {
            std::memset(&top_.m_axi_rdata, 0, BUS);
            answer = kDecodeError;
        }
        if (hits_error(address)) answer = Answer(s_.error_answer);
        top_.m_axi_rresp = response(answer);
        top_.m_axi_rid = answer == kWrongId;
        top_.m_axi_rlast = read_beat_ + 1 == burst.beats;
    }

    void drive_write(uint64_t next) {
        const bool room = sdram_.present() ? sdram_.write_ready() : writes_.size() < s_.write_outstanding;
        top_.m_axi_awready = room && (takes_address_first() || data_there()) && !stalled(AW);
        const bool takes = (takes_data_early() || has_address()) && (!sdram_.present() || sdram_.data_ready());
        top_.m_axi_wready = takes && !stalled(W);
        if (top_.m_axi_bvalid && !b_taken_) return;
        b_taken_ = false;
        const bool complete = !writes_.empty() && written_ != writes_.tail() - writes_.size();
        const bool there = sdram_.present() ? sdram_.response_valid(next) : next >= writes_.front().ready_at;
        const bool valid = complete && there && !stalled(B);
        top_.m_axi_bvalid = valid;
        if (!valid) return;
        const Answer answer = writes_.front().answer;
        top_.m_axi_bresp = response(answer);
        top_.m_axi_bid = answer == kWrongId;
    }

    static uint8_t response(Answer answer) { return answer == kWrongId ? kOkay : answer; }

    // What the next address waits for, where it waits: its first beat on the bus, its last beat taken.
    bool data_there() const {
        return s_.write_order == kDataShown ? top_.m_axi_wvalid && !has_address() : !early_.empty() && early_.back().last;
    }

    bool inside(uint64_t address) const {
        return address >= s_.window_base && address - s_.window_base + BUS <= s_.window_bytes;
    }

    bool hits_error(uint64_t address) const {
        return __builtin_expect(s_.error_answer != kOkay, 0) && s_.error_address - address < BUS;
    }

    void check(uint64_t t, const char* channel, const Address& a, uint32_t outstanding, uint32_t limit) {
        const uint64_t bytes = (uint64_t{a.len} + 1) * BUS;
        if ((1u << a.size) != BUS) report_.fail(t, "%s: size must be %u bytes, not %u", channel, BUS, 1u << a.size);
        if (a.burst != 1) report_.fail(t, "%s: burst must be INCR, not %u", channel, a.burst);
        if (a.id) report_.fail(t, "%s: id must be 0, not %u", channel, a.id);
        if (a.lock || a.cache != 3 || a.prot)
            report_.fail(t, "%s: lock, cache, prot must be 0, 3, 0, not %u, %u, %u", channel, a.lock, a.cache, a.prot);
        if (a.address % BUS) report_.fail(t, "%s: address %#llx must be aligned", channel, (unsigned long long)a.address);
        if (a.len >= s_.burst_beats)
            report_.fail(t, "%s: burst must have at most %u beats, not %u", channel, s_.burst_beats, a.len + 1);
        if ((a.address & 4095) + bytes > 4096)
            report_.fail(t, "%s: burst at %#llx of %llu bytes must not cross a 4 KiB boundary", channel,
                         (unsigned long long)a.address, (unsigned long long)bytes);
        if (!inside(a.address) || !inside(a.address + bytes - BUS))
            report_.fail(t, "%s: burst at %#llx of %llu bytes must lie in the window", channel,
                         (unsigned long long)a.address, (unsigned long long)bytes);
        if (outstanding > limit)
            report_.fail(t, "%s: at most %u bursts may be outstanding, not %u", channel, limit, outstanding);
    }

    void hold_w() {
        std::memcpy(held_data_, &top_.m_axi_wdata, BUS);
        held_last_ = top_.m_axi_wlast;
        held_strobes_ = top_.m_axi_wstrb;
    }

    void check_w_stable(uint64_t t) {
        if (std::memcmp(held_data_, &top_.m_axi_wdata, BUS) || held_last_ != bool(top_.m_axi_wlast) ||
            held_strobes_ != top_.m_axi_wstrb)
            report_.fail(t, "W: data must be stable while it waits");
    }

    Top& top_;
    Settings s_;
    Report& report_;
    // W beats taken before their address.
    struct Beat {
        uint8_t data[BUS];
        bool last;
    };

    Ring reads_, writes_;
    std::deque<Beat> early_;
    uint32_t written_ = 0;  // sequence number of the write burst whose data comes next
    uint32_t read_beat_ = 0, write_beat_ = 0;
    bool r_taken_ = false, b_taken_ = false, active_ = true, quiet_ = false;
    bool ar_held_ = false, aw_held_ = false, w_held_ = false, held_last_ = false;
    Address ar_{}, aw_{};
    uint8_t held_data_[BUS] = {};
    uint64_t held_strobes_ = 0;
    Random random_;
    uint32_t stall_[5] = {};
    Sdram sdram_;
};

}  // namespace vta

#endif  // VTA_AXI_MEMORY_H_
