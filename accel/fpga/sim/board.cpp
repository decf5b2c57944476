// A board in simulation: the verilated SoC with a clock, and its serial line behind a TCP socket.
// Usage: board DIVISOR [PATIENCE]; prints the address it listens on, serves one host at a time, ends with its standard
// input. A host that says nothing for PATIENCE seconds, though it waits for nothing, leaves to another one that waits.
// Each line of the standard input is answered by the cycles so far; the first one also makes the host's own time pass
// for nothing: from then on the clock runs only while the line carries something or the host waits for an answer.
// The line runs at DIVISOR cycles a bit; while it has long been idle, the clock rests until the host speaks.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

#include BOARD_HEADER
#include "verilated.h"

namespace {

// Sends bytes of the host to the SoC: start bit, eight data bits, stop bit.
class Sender {
public:
    explicit Sender(unsigned divisor) : divisor_{divisor} {}
    bool step(std::deque<uint8_t>& bytes) {
        if (!left_ && !bytes.empty()) {
            bits_ = 0x200u | unsigned(bytes.front()) << 1;
            bytes.pop_front();
            left_ = 10;
            count_ = divisor_;
        }
        if (!left_) return true;
        const bool line = bits_ & 1;
        if (!--count_) {
            bits_ >>= 1;
            --left_;
            count_ = divisor_;
        }
        return line;
    }
    bool idle() const { return !left_; }

private:
    const unsigned divisor_;
    unsigned bits_ = 0, left_ = 0, count_ = 0;
};

// Receives bytes of the SoC, sampled in the middle of each bit.
class Receiver {
public:
    explicit Receiver(unsigned divisor) : divisor_{divisor} {}
    int step(bool line) {
        if (!left_) {
            if (!line) {
                left_ = 10;
                count_ = divisor_ / 2;
            }
            return -1;
        }
        if (count_--) return -1;
        count_ = divisor_ - 1;
        --left_;
        if (left_ && left_ != 9) byte_ = uint8_t(byte_ >> 1 | line << 7);
        return left_ ? -1 : byte_;
    }
    bool idle() const { return !left_; }

private:
    const unsigned divisor_;
    unsigned left_ = 0, count_ = 0;
    uint8_t byte_ = 0;
};

// Follows the host's commands: how many bytes it waits for.
class Debt {
public:
    void sent(uint8_t byte) {
        if (left_) {
            --left_;
            return;
        }
        if (place_ == 0) code_ = byte;
        if (place_ == 1) count_ = byte;
        if (++place_ < kHead) return;
        place_ = 0;
        if (code_ == kWrite) left_ = 4u * count_;
        if (code_ == kRead) owed_ += 4u * count_;
    }
    void answered() { owed_ -= owed_ > 0; }
    bool none() const { return !owed_; }

private:
    static constexpr unsigned kHead = 6, kWrite = 1, kRead = 2;
    unsigned place_ = 0, code_ = 0, count_ = 0, left_ = 0;
    uint64_t owed_ = 0;
};

int listen_on_any_port() {
    const int server = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (server < 0 || bind(server, reinterpret_cast<sockaddr*>(&address), size) || listen(server, 1)) {
        std::perror("board: a local TCP port must be free");
        std::exit(1);
    }
    getsockname(server, reinterpret_cast<sockaddr*>(&address), &size);
    std::printf("socket://127.0.0.1:%u\n", unsigned(ntohs(address.sin_port)));
    std::fflush(stdout);
    return server;
}

// Cycles that the SoC gets after the line fell silent: answers on their way, reset, refresh.
constexpr unsigned kTail = 1u << 18;
constexpr unsigned kLookEvery = 256;
constexpr unsigned kLead = 1u << 14;
// Seconds that a host may be silent, and milliseconds between two looks at that.
constexpr double kPatience = 60;
constexpr int kLookMs = 200;

using Clock = std::chrono::steady_clock;

class Board {
public:
    Board(unsigned divisor, double patience) : sender_{divisor}, receiver_{divisor}, patience_{patience} {
        top_.BOARD_RX = 1;
        for (int i = 0; i < 16; ++i) {
            top_.BOARD_RESET = i >= 8 ? !BOARD_RESET_LEVEL : BOARD_RESET_LEVEL;
            clock();
        }
        // Hosts find a board that has had its power for long.
        for (unsigned i = 0; i < kLead; ++i) clock();
    }

    // Serves one connection; false when this program is to end.
    bool serve(int server) {
        pollfd waiting[2] = {{server, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
        while (true) {
            poll(waiting, 2, -1);
            if (waiting[1].revents && !answer()) return false;
            if (waiting[0].revents & POLLIN) break;
        }
        const int host = accept(server, nullptr, nullptr);
        const int on = 1;
        setsockopt(host, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        const bool stay = talk(host, server);
        close(host);
        return stay;
    }

private:
    bool talk(int host, int server) {
        unsigned tail = kTail;
        debt_ = Debt{};
        auto heard = Clock::now();
        while (true) {
            const bool resting = tail == 0 || rests();
            pollfd waiting[2] = {{host, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
            poll(waiting, 2, resting ? kLookMs : 0);
            if (waiting[1].revents && !answer()) return false;
            if (waiting[0].revents || !quiet() || !debt_.none()) heard = Clock::now();
            if (std::chrono::duration<double>(Clock::now() - heard).count() > patience_) {
                pollfd other{server, POLLIN, 0};
                if (poll(&other, 1, 0) > 0) return true;
            }
            if (waiting[0].revents) {
                uint8_t data[4096];
                const ssize_t count = read(host, data, sizeof data);
                if (count <= 0) return true;
                to_core_.insert(to_core_.end(), data, data + count);
                for (ssize_t i = 0; i < count; ++i) debt_.sent(data[i]);
                tail = kTail;
            }
            for (unsigned i = 0; i < kLookEvery && !rests(); ++i) step();
            if (!from_core_.empty()) {
                if (write(host, from_core_.data(), from_core_.size()) < 0) return true;
                from_core_.clear();
            }
            tail = quiet() ? tail - (tail > kLookEvery ? kLookEvery : tail) : kTail;
        }
    }

    bool quiet() const { return to_core_.empty() && sender_.idle() && receiver_.idle(); }

    // Whether nothing but the host can go on, whose time does not count.
    bool rests() const { return timed_ && quiet() && debt_.none(); }

    // Says the cycles so far; false at the end of the standard input.
    bool answer() {
        char asked;
        if (read(STDIN_FILENO, &asked, 1) != 1) return false;
        timed_ = true;
        std::printf("%llu\n", static_cast<unsigned long long>(cycles_));
        std::fflush(stdout);
        return true;
    }

    void step() {
        top_.BOARD_RX = sender_.step(to_core_);
        clock();
        receive();
        ++cycles_;
    }

    void receive() {
        const int byte = receiver_.step(top_.BOARD_TX);
        if (byte < 0) return;
        from_core_.push_back(char(byte));
        debt_.answered();
    }

    void clock() {
        top_.BOARD_CLOCK = 0;
        top_.eval();
        top_.BOARD_CLOCK = 1;
        top_.eval();
        // A model that found a rule broken has said so.
        if (context_.gotFinish()) std::exit(3);
    }

    VerilatedContext context_;
    BOARD_MODEL top_{&context_, "board"};
    Sender sender_;
    Receiver receiver_;
    Debt debt_;
    const double patience_;
    bool timed_ = false;
    uint64_t cycles_ = 0;
    std::deque<uint8_t> to_core_;
    std::string from_core_;
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 2 && count != 3) {
        std::fprintf(stderr, "usage: board DIVISOR [PATIENCE]\n");
        return 2;
    }
    const int server = listen_on_any_port();
    Board board(unsigned(std::atoi(arguments[1])), count == 3 ? std::atof(arguments[2]) : kPatience);
    while (board.serve(server)) {
    }
    return 0;
}
