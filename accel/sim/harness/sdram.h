// When an SDRAM behind the AXI port answers: the model of accel/sim/dram_timing.py (Sdram), edge by edge.
// One beat at a time has the chip. `decide` comes first at an edge and sees what happened at edges before it. What the
// bus brings when the controller is not ready waits in a register; read beats pass one, and wait in one behind it.
#ifndef VTA_SDRAM_H_
#define VTA_SDRAM_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace vta {

// Mirrored field by field in accel/sim/rtl_model.py; beat_cycles 0: there is none.
struct SdramSettings {
    uint32_t beat_cycles, beat_bytes, latency, read_room, write_room;
    uint32_t row_bytes, banks, rp, rcd, recovery, bank_switch, turn, write_to_read, response;
    uint32_t refresh, refresh_every;
};

class Sdram {
public:
    explicit Sdram(const SdramSettings& settings) : s_{settings} { restart(); }

    bool present() const { return s_.beat_cycles != 0; }

    // As before the first request of all.
    void restart() {
        for (Side& side : sides_) side = Side{};
        leaving_.clear();
        answers_.clear();
        rows_.assign(std::max(1u, s_.banks), kClosed);
        issued_ = -(int64_t{1} << 20);
        direction_ = READ;
        bank_ = 0;
        goes_on_ = false;
        next_ = 0;
        refresh_ = 0;
        waiting_ = 0;
        answered_ = 0;
        shown_ = kept_ = false;
    }

    // Chooses a beat at edge t; then the controller accepts what waits.
    void decide(int64_t t) {
        give(t);
        for (Side& side : sides_) side.accept(t);
    }

    // Handshakes of an address at edge t, `place` counted from the window's base.
    void read(int64_t t, uint64_t place, uint32_t beats) {
        if (!refresh_) refresh_ = t + s_.refresh_every;
        sides_[READ].take(t, place, beats);
    }
    void write(int64_t t, uint64_t place, uint32_t beats) { sides_[WRITE].take(t, place, beats); }

    // A W beat is taken at this edge.
    void data() { ++waiting_; }
    // Edge t of the R channel, at which the bus has taken the beat that was there or not.
    void show(int64_t t, bool taken) {
        const bool leaves = !kept_ && !leaving_.empty() && t >= leaving_.front();
        if (leaves) leaving_.pop_front();
        if (shown_ && !taken) {
            kept_ |= leaves;
        } else {
            shown_ = kept_ || leaves;
            kept_ = false;
        }
    }
    void answered() { answers_.pop_front(); }

    // What edge `next` shows.
    bool read_ready() const { return !sides_[READ].waits; }
    bool write_ready() const { return !sides_[WRITE].waits; }
    bool data_ready() const { return waiting_ < s_.write_room; }
    bool data_valid() const { return shown_; }
    bool response_valid(int64_t next) const { return !answers_.empty() && next >= answers_.front(); }

private:
    enum Direction { READ, WRITE };
    // The burst that is accepted, the first edge at which another can be, and the one that waits for that in a register.
    struct Side {
        uint64_t place = 0, waiting_place = 0;
        uint32_t beats = 0, waiting_beats = 0;
        int64_t slot = 0;
        bool waits = false;
        void take(int64_t t, uint64_t next_place, uint32_t next_beats) {
            waiting_place = next_place;
            waiting_beats = next_beats;
            waits = true;
            accept(t);
        }
        void accept(int64_t t) {
            if (!waits || beats || t < slot) return;
            place = waiting_place;
            beats = waiting_beats;
            waits = false;
        }
    };
    static constexpr int64_t kClosed = -1;

    // Gives the chip away: a beat is chosen as early as the one before it has begun.
    void give(int64_t t) {
        const bool read = sides_[READ].beats && leaving_.size() < s_.read_room;
        const bool write = sides_[WRITE].beats && waiting_;
        if (t < next_ || (!read && !write)) return;
        const Direction next = read && write ? (goes_on_ ? direction_ : Direction(1 - direction_)) : read ? READ : WRITE;
        Side& side = sides_[next];
        const int64_t issued = issue(t, next, side.place);
        side.place += s_.beat_bytes;
        goes_on_ = --side.beats != 0;
        if (!goes_on_) side.slot = t + 1;
        if (next == READ) {
            leaving_.push_back(issued + s_.beat_cycles + s_.latency);
        } else {
            --waiting_;
            if (!goes_on_) answer(issued + s_.beat_cycles + s_.response);
        }
    }

    // First edge behind the last beat and the refreshes that are due by then, or by edge t.
    int64_t refreshed(int64_t t, int64_t behind) {
        while (refresh_ <= std::max(t, behind)) {
            behind = std::max(refresh_, behind) + s_.refresh;
            refresh_ += s_.refresh_every;
            std::fill(rows_.begin(), rows_.end(), kClosed);
        }
        return behind;
    }

    int64_t issue(int64_t t, Direction next, uint64_t place) {
        const uint32_t bank = place / s_.row_bytes % s_.banks;
        const int64_t row = place / s_.row_bytes / s_.banks;
        const int64_t behind = refreshed(t, issued_ + s_.beat_cycles);
        next_ = std::max(behind, t + 1);
        int64_t issued = bank == bank_ ? behind : behind + s_.bank_switch;
        if (next != direction_) {
            t += s_.turn;
            issued += s_.turn;
            if (next == READ) issued = std::max(issued, behind + s_.write_to_read);
        }
        issued = std::max(issued, t);
        if (rows_[bank] != row) {
            if (rows_[bank] != kClosed) {
                if (direction_ == WRITE && bank == bank_) issued = std::max(issued, behind + s_.recovery);
                issued += s_.rp;
            }
            issued += 1 + s_.rcd;
            rows_[bank] = row;
        }
        issued_ = issued;
        direction_ = next;
        bank_ = bank;
        return issued;
    }

    void answer(int64_t edge) {
        answered_ = std::max(edge, answered_ + 1);
        answers_.push_back(answered_);
    }

    const SdramSettings s_;
    Side sides_[2];
    // first edges at which read beats leave the controller, at which responses can be sampled
    std::deque<int64_t> leaving_, answers_;
    std::vector<int64_t> rows_;
    int64_t issued_, next_, refresh_, answered_;
    Direction direction_;
    // waiting_: write beats that the chip has not had
    uint32_t bank_, waiting_;
    // a read beat is on the bus, one waits for that
    bool goes_on_, shown_, kept_;
};

}  // namespace vta

#endif  // VTA_SDRAM_H_
