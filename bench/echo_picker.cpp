// The cheapest possible picker: it answers Envoy's messages with prepared bytes and decides nothing.
//
// The latency that it adds is the floor for any picker on this machine: what is left is Envoy, the kernel and
// the scheduler. It speaks just enough HTTP/2 for Envoy: one thread, no HPACK, no flow control of its own.
//
// Usage: echo_picker PORT OPENING TRAILERS GO_ON PICK...   (all but the port in hexadecimal)
// OPENING and TRAILERS are header blocks, GO_ON and PICK are framed gRPC messages.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

constexpr char kPrefaceLength = 24;
constexpr int kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kWindow = 8;
constexpr int kEndStream = 1, kAck = 1, kEndHeaders = 4;
constexpr unsigned char kRequestHeaders = 2 << 3 | 2;

std::string opening, trailers, go_on;
std::vector<std::string> picks;
size_t next_pick = 0;

struct Connection {
  bool greeted = false;
  std::string received, answers;
  std::unordered_map<uint32_t, bool> opened;  // by stream: whether the response headers were sent
};

std::string from_hex(const char* text) {
  std::string bytes;
  for (; text[0] && text[1]; text += 2) bytes += static_cast<char>(std::stoi(std::string(text, 2), nullptr, 16));
  return bytes;
}

uint32_t word(const unsigned char* at) { return at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3]; }

std::string bytes_of(uint32_t number) {
  return {static_cast<char>(number >> 24), static_cast<char>(number >> 16), static_cast<char>(number >> 8),
          static_cast<char>(number)};
}

void add_frame(std::string& out, int kind, int flags, uint32_t stream, const std::string& payload) {
  out += bytes_of(static_cast<uint32_t>(payload.size()) << 8 | kind);
  out += static_cast<char>(flags);
  out += bytes_of(stream);
  out += payload;
}

void answer(Connection& connection, uint32_t stream, const std::string& message) {
  bool& opened = connection.opened[stream];
  if (!opened) add_frame(connection.answers, kHeaders, kEndHeaders, stream, opening);
  opened = true;
  add_frame(connection.answers, kData, 0, stream, message);
}

void end(Connection& connection, uint32_t stream) {
  const bool opened = connection.opened[stream];
  connection.opened.erase(stream);
  add_frame(connection.answers, kHeaders, kEndHeaders | kEndStream, stream, opened ? trailers : opening + trailers);
}

void take_frame(Connection& connection, int kind, int flags, uint32_t stream, const unsigned char* payload,
                uint32_t length) {
  if (kind == kSettings && !(flags & kAck)) {
    add_frame(connection.answers, kSettings, kAck, 0, "");
  } else if (kind == kPing && !(flags & kAck)) {
    add_frame(connection.answers, kPing, kAck, 0, std::string(reinterpret_cast<const char*>(payload), length));
  } else if (kind == kReset) {
    connection.opened.erase(stream);
  } else if (kind == kData) {
    if (length > 5) {  // Envoy sends each message in one frame
      if (payload[5] == kRequestHeaders) {
        answer(connection, stream, picks[next_pick++ % picks.size()]);
      } else {
        answer(connection, stream, go_on);
      }
    }
    if (flags & kEndStream) end(connection, stream);
  }
}

void take(Connection& connection) {
  const auto* at = reinterpret_cast<const unsigned char*>(connection.received.data());
  size_t used = 0, size = connection.received.size();
  if (!connection.greeted) {
    if (size < kPrefaceLength) return;
    connection.greeted = true;
    used = kPrefaceLength;
    add_frame(connection.answers, kSettings, 0, 0, std::string("\0\3\0\x0f\x42\x40", 6));  // a million streams
    add_frame(connection.answers, kWindow, 0, 0, bytes_of(1 << 30));
  }
  while (size - used >= 9) {
    const uint32_t head = word(at + used), length = head >> 8;
    if (size - used < 9 + length) break;
    take_frame(connection, head & 0xff, at[used + 4], word(at + used + 5), at + used + 9, length);
    used += 9 + length;
  }
  connection.received.erase(0, used);
}

bool serve(int socket, Connection& connection) {
  char buffer[1 << 16];
  const ssize_t got = read(socket, buffer, sizeof buffer);
  if (got <= 0) return false;
  connection.received.append(buffer, got);
  take(connection);
  for (size_t sent = 0; sent < connection.answers.size();) {
    const ssize_t more = write(socket, connection.answers.data() + sent, connection.answers.size() - sent);
    if (more < 0) return false;
    sent += more;
  }
  connection.answers.clear();
  return true;
}

}  // namespace

int main(int count, char** words) {
  if (count < 6) {
    std::fprintf(stderr, "usage: echo_picker PORT OPENING TRAILERS GO_ON PICK...\n");
    return 2;
  }
  opening = from_hex(words[2]);
  trailers = from_hex(words[3]);
  go_on = from_hex(words[4]);
  for (int place = 5; place < count; ++place) picks.push_back(from_hex(words[place]));
  const int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(words[1])));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) || listen(listener, 128)) {
    std::perror("echo_picker");
    return 1;
  }
  const int poll = epoll_create1(0);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = listener;
  epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  std::unordered_map<int, Connection> connections;
  for (epoll_event ready[64];;) {
    const int events = epoll_wait(poll, ready, 64, -1);
    for (int place = 0; place < events; ++place) {
      const int socket = ready[place].data.fd;
      if (socket == listener) {
        const int made = accept(listener, nullptr, nullptr);
        setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        event.data.fd = made;
        epoll_ctl(poll, EPOLL_CTL_ADD, made, &event);
        connections[made];
      } else if (!serve(socket, connections[socket])) {
        connections.erase(socket);
        close(socket);
      }
    }
  }
}
