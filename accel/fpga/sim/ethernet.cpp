// A board on Ethernet in simulation: the verilated System with a clock, its RGMII pins behind a UDP socket.
// Usage: board; prints the address it listens on, ends with its standard input.
// Datagrams of the host travel as frames of a peer at 192.168.1.100, which answers what the board asks of ARP.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

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

constexpr std::array<uint8_t, 6> kBoardMac{0x10, 0xe2, 0xd5, 0, 0, 0}, kHostMac{0x02, 0, 0, 0, 0, 0x64};
constexpr std::array<uint8_t, 4> kBoardIp{192, 168, 1, 50}, kHostIp{192, 168, 1, 100};
constexpr unsigned kPort = 1234, kArp = 0x0806, kIp = 0x0800, kUdp = 17;
// Bytes between two frames, and the least of a frame without its check.
constexpr unsigned kGap = 16, kLeast = 60;
// Cycles that the System gets after the line fell silent, and between two looks at the socket.
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
Bytes on_wire(unsigned type, const Bytes& payload) {
    Bytes frame;
    append(frame, kBoardMac);
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

Bytes udp_packet(const uint8_t* data, size_t size) {
    Bytes packet{0x45, 0};
    append16(packet, unsigned(28 + size));
    append(packet, std::array<uint8_t, 8>{0, 0, 0x40, 0, 64, kUdp, 0, 0});
    append(packet, kHostIp);
    append(packet, kBoardIp);
    uint32_t sum = 0;
    for (size_t i = 0; i < 20; i += 2) sum += read16(packet, i);
    sum = ~((sum & 0xffff) + (sum >> 16));
    packet[10] = uint8_t(sum >> 8);
    packet[11] = uint8_t(sum);
    append16(packet, kPort);
    append16(packet, kPort);
    append16(packet, unsigned(8 + size));
    append16(packet, 0);
    packet.insert(packet.end(), data, data + size);
    return packet;
}

Bytes arp_answer(const Bytes& request) {
    Bytes packet(request.begin(), request.begin() + 6);
    append16(packet, 2);
    append(packet, kHostMac);
    append(packet, kHostIp);
    append(packet, kBoardMac);
    append(packet, kBoardIp);
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
                if (count >= 0) waiting_.push_back(on_wire(kIp, udp_packet(data, size_t(count))));
                tail = kTail;
            }
            for (unsigned i = 0; i < kLookEvery; ++i) step();
            tail = waiting_.empty() && arriving_.empty() ? tail - (tail > kLookEvery ? kLookEvery : tail) : kTail;
        }
    }

private:
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
        if (read16(body, 12) == kArp && read16(payload, 6) == 1) waiting_.push_back(on_wire(kArp, arp_answer(payload)));
        if (read16(body, 12) == kIp && payload[9] == kUdp)
            sendto(line_, &payload[28], read16(payload, 24) - 8u, 0, reinterpret_cast<sockaddr*>(&host_), sizeof host_);
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
