// A board on Ethernet in simulation: the verilated SoC with a clock, its RGMII pins behind a UDP socket.
// Usage: board; prints the address it listens on, ends with its standard input.
// Datagrams of the host travel as frames of a peer at 192.168.1.100, which asks by ARP where the board is, and before each
// of them others that the board must leave alone.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include BOARD_HEADER
#include "verilated.h"

namespace {

using Bytes = std::vector<uint8_t>;
using Mac = std::array<uint8_t, 6>;
using Ip = std::array<uint8_t, 4>;

constexpr Mac kEveryone{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, kHostMac{0x02, 0, 0, 0, 0, 0x64};
constexpr Ip kBoardIp{192, 168, 1, 50}, kOtherIp{192, 168, 1, 51}, kHostIp{192, 168, 1, 100};
constexpr unsigned kPort = 1234, kArp = 0x0806, kIp = 0x0800, kUdp = 17, kAsks = 1, kTells = 2;
// Bytes between two frames, and the least of a frame without its check.
constexpr unsigned kGap = 16, kLeast = 60;
// Cycles that the SoC gets after the line fell silent, and between two looks at the socket.
constexpr unsigned kTail = 1u << 16, kLookEvery = 64;
constexpr unsigned kLead = 1u << 14;

template <typename Range>
void append(Bytes& bytes, const Range& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
}

void append16(Bytes& bytes, unsigned value) {
    bytes.push_back(uint8_t(value >> 8));
    bytes.push_back(uint8_t(value));
}

unsigned read16(const Bytes& bytes, size_t at) { return unsigned(bytes[at]) << 8 | bytes[at + 1]; }

uint32_t check(const Bytes& bytes) {
    uint32_t crc = ~0u;
    for (const uint8_t byte : bytes) {
        crc ^= byte;
        for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

// What goes over the wire for a frame: preamble, padding and check around it.
Bytes on_wire(const Mac& to, unsigned type, const Bytes& payload) {
    Bytes frame;
    append(frame, to);
    append(frame, kHostMac);
    append16(frame, type);
    append(frame, payload);
    if (frame.size() < kLeast) frame.resize(kLeast, 0);
    const uint32_t crc = check(frame);
    for (int i = 0; i < 4; ++i) frame.push_back(uint8_t(crc >> 8 * i));
    Bytes wire(7, 0x55);
    wire.push_back(0xd5);
    append(wire, frame);
    return wire;
}

Bytes udp_packet(const Ip& to, const Bytes& data) {
    const size_t size = data.size();
    Bytes packet{0x45, 0};
    append16(packet, unsigned(28 + size));
    append(packet, std::array<uint8_t, 8>{0, 0, 0x40, 0, 64, kUdp, 0, 0});
    append(packet, kHostIp);
    append(packet, to);
    uint32_t sum = 0;
    for (size_t i = 0; i < 20; i += 2) sum += read16(packet, i);
    sum = ~((sum & 0xffff) + (sum >> 16));
    packet[10] = uint8_t(sum >> 8);
    packet[11] = uint8_t(sum);
    append16(packet, kPort);
    append16(packet, kPort);
    append16(packet, unsigned(8 + size));
    append16(packet, 0);
    append(packet, data);
    return packet;
}

Bytes arp_request(const Ip& whom) {
    Bytes packet{0, 1, kIp >> 8, kIp & 0xff, 6, 4, 0, kAsks};
    append(packet, kHostMac);
    append(packet, kHostIp);
    append(packet, Mac{});
    append(packet, whom);
    return packet;
}

class Board {
public:
    explicit Board(int line) : line_{line} {
        top_.rx_ctl_i = 0;
        top_.rx_data_i = 0;
        for (unsigned i = 0; i < 16 + kLead; ++i) {
            top_.rst_ni = i >= 8;
            step();
        }
    }

    void serve() {
        unsigned tail = kTail;
        while (true) {
            pollfd waiting[2] = {{line_, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
            poll(waiting, 2, tail ? 0 : -1);
            if (waiting[1].revents) return;
            if (waiting[0].revents) {
                uint8_t data[2048];
                socklen_t size = sizeof host_;
                const ssize_t count = recvfrom(line_, data, sizeof data, 0, reinterpret_cast<sockaddr*>(&host_), &size);
                // A host that left is told by an error of the socket.
                if (count >= 0) ask(Bytes(data, data + count));
                tail = kTail;
            }
            for (unsigned i = 0; i < kLookEvery; ++i) step();
            tail = waiting_.empty() && arriving_.empty() ? tail - (tail > kLookEvery ? kLookEvery : tail) : kTail;
        }
    }

private:
    // A datagram waits until the board has said where it is.
    void ask(const Bytes& data) {
        asked_.push_back(data);
        if (known_) return send();
        if (asked_.size() > 1) return;
        for (const Ip& whom : {kOtherIp, kBoardIp}) waiting_.push_back(on_wire(kEveryone, kArp, arp_request(whom)));
    }

    // What was asked, behind the same with a wrong check, for another board, and without its last word.
    void send() {
        for (; !asked_.empty(); asked_.pop_front(), ++expected_) {
            const Bytes data = asked_.front(), less(data.begin(), data.end() - 4);
            const Bytes right = on_wire(mac_, kIp, udp_packet(kBoardIp, data));
            Bytes wrong = right;
            wrong.back() ^= 1;
            waiting_.push_back(wrong);
            waiting_.push_back(on_wire(mac_, kIp, udp_packet(kOtherIp, data)));
            waiting_.push_back(on_wire(mac_, kIp, udp_packet(kBoardIp, less)));
            waiting_.push_back(right);
        }
    }

    // One byte each way: its low half around the rising edge, its high half around the falling one.
    void step() {
        const int byte = next();
        top_.rx_ctl_i = byte >= 0;
        // An idle line says that it is up, at 125 MHz, both ways at once.
        top_.rx_data_i = byte >= 0 ? byte & 15 : 0xd;
        edge(1);
        const bool taken = top_.tx_ctl_o;
        const unsigned low = top_.tx_data_o;
        top_.rx_data_i = byte >= 0 ? byte >> 4 : 0xd;
        edge(0);
        if (taken)
            arriving_.push_back(uint8_t(low | unsigned(top_.tx_data_o) << 4));
        else if (!arriving_.empty())
            arrived();
    }

    int next() {
        if (gap_) {
            --gap_;
            return -1;
        }
        if (waiting_.empty()) return -1;
        const Bytes& frame = waiting_.front();
        const int byte = frame[sent_++];
        if (sent_ == frame.size()) {
            waiting_.pop_front();
            sent_ = 0;
            gap_ = kGap;
        }
        return byte;
    }

    void arrived() {
        size_t begin = 0;
        while (begin < arriving_.size() && arriving_[begin] == 0x55) ++begin;
        Bytes frame(arriving_.begin() + long(begin), arriving_.end());
        arriving_.clear();
        if (frame.size() < 1 + kLeast + 4 || frame[0] != 0xd5) return refuse("a frame must have its preamble and size");
        const Bytes body(frame.begin() + 1, frame.end() - 4);
        uint32_t crc = 0;
        for (size_t i = 4; i--;) crc = crc << 8 | frame[frame.size() - 4 + i];
        if (crc != check(body)) return refuse("a frame must have the check of its bytes");
        const Bytes payload(body.begin() + 14, body.end());
        if (read16(body, 12) == kArp) return located(payload);
        if (read16(body, 12) != kIp || payload[9] != kUdp) return refuse("a frame must be of ARP or UDP");
        if (!std::equal(kHostMac.begin(), kHostMac.end(), body.begin())) return refuse("a frame must be for the host");
        uint32_t sum = 0;
        for (size_t i = 0; i < 20; i += 2) sum += read16(payload, i);
        if ((sum & 0xffff) + (sum >> 16) != 0xffff) return refuse("a packet must have the sum of its header");
        if (!expected_--) return refuse("a packet must be asked for");
        sendto(line_, &payload[28], read16(payload, 24) - 8u, 0, reinterpret_cast<sockaddr*>(&host_), sizeof host_);
    }

    // ARP: the board says where it is, when it was asked.
    void located(const Bytes& payload) {
        if (known_) return refuse("ARP must be answered once, not for another address");
        const Bytes right{0, 1, kIp >> 8, kIp & 0xff, 6, 4, 0, kTells};
        if (!std::equal(right.begin(), right.end(), payload.begin())) return refuse("ARP must be answered");
        if (!std::equal(kBoardIp.begin(), kBoardIp.end(), &payload[14])) return refuse("ARP must tell the board's address");
        if (!std::equal(kHostIp.begin(), kHostIp.end(), &payload[24])) return refuse("ARP must be told to who asked");
        std::copy_n(&payload[8], mac_.size(), mac_.begin());
        known_ = true;
        send();
    }

    void refuse(const char* what) {
        std::fprintf(stderr, "board: %s\n", what);
        std::exit(3);
    }

    void edge(int level) {
        top_.clk_i = level;
        top_.eval();
        // A model that found a rule broken has said so.
        if (context_.gotFinish()) std::exit(3);
    }

    VerilatedContext context_;
    BOARD_MODEL top_{&context_, "board"};
    const int line_;
    sockaddr_in host_{};
    // Where the board is; datagrams of the host that wait for that, and answers that are to come.
    Mac mac_{};
    bool known_ = false;
    std::deque<Bytes> asked_;
    unsigned expected_ = 0;
    // Frames on their way to the board.
    std::deque<Bytes> waiting_;
    size_t sent_ = 0;
    unsigned gap_ = 0;
    Bytes arriving_;
};

}  // namespace

int main() {
    const int line = socket(AF_INET, SOCK_DGRAM, 0);
    // Hosts answer from the same port number of another address.
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    socklen_t size = sizeof address;
    if (line < 0 || bind(line, reinterpret_cast<sockaddr*>(&address), size)) {
        std::perror("board: a local UDP port must be free");
        return 1;
    }
    getsockname(line, reinterpret_cast<sockaddr*>(&address), &size);
    Board board(line);
    std::printf("etherbone://127.0.0.2:%u\n", unsigned(ntohs(address.sin_port)));
    std::fflush(stdout);
    board.serve();
    return 0;
}
