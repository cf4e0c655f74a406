#include "platform/meeting.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.hpp"

namespace stretto::platform {
namespace {

constexpr int most_addresses = 16;
constexpr size_t longest_address = 64;

int milliseconds_until(uint64_t deadline) {
  uint64_t now = now_ns();
  return now >= deadline ? 0 : int(std::min<uint64_t>((deadline - now) / 1'000'000 + 1, 1000));
}

// Begins to connect to "a.b.c.d:port". -1: not to be had.
int begin_connect(const char* text, size_t length) {
  char host[longest_address];
  const char* colon = static_cast<const char*>(memchr(text, ':', length));
  if (colon == nullptr || size_t(colon - text) >= sizeof host) return -1;
  memcpy(host, text, size_t(colon - text));
  host[colon - text] = '\0';
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(uint16_t(atoi(colon + 1)));
  if (inet_pton(AF_INET, host, &to.sin_addr) != 1) return -1;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 || errno == EINPROGRESS) return fd;
  close(fd);
  return -1;
}

// Reads a line into `line`, without its newline. False: the connection broke, or time is up.
bool read_line(int fd, char* line, size_t bytes, uint64_t deadline) {
  size_t length = 0;
  while (length + 1 < bytes) {
    ssize_t n = recv(fd, line + length, 1, 0);  // lines are short, and few
    if (n == 1) {
      if (line[length] == '\n') return line[length] = '\0', true;
      ++length;
      continue;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) return false;
    pollfd readable = {fd, POLLIN, 0};
    if (now_ns() >= deadline) return false;
    poll(&readable, 1, milliseconds_until(deadline));
  }
  return false;
}

bool greeted(int fd, uint64_t deadline) {
  char line[64];
  size_t length = strlen(meeting_greeting) - 1;
  return read_line(fd, line, sizeof line, deadline) && strlen(line) == length && strncmp(line, meeting_greeting, length) == 0;
}

// Connections to all addresses at once.
class Attempts {
 public:
  explicit Attempts(const char* addresses) {
    for (const char* at = addresses; *at != '\0' && count_ < most_addresses; at += at[strcspn(at, "/")] == '/') {
      size_t length = strcspn(at, "/");
      int fd = begin_connect(at, length);
      if (fd >= 0) open_[count_++] = {fd, POLLIN, 0};
      at += length;
    }
  }
  ~Attempts() {
    for (int i = 0; i < count_; ++i) close(open_[i].fd);
  }
  Attempts(const Attempts&) = delete;
  Attempts& operator=(const Attempts&) = delete;

  // The first that has greeted; the caller closes it. -1: none by the deadline.
  int first(uint64_t deadline) {
    while (count_ > 0 && now_ns() < deadline) {
      poll(open_, nfds_t(count_), milliseconds_until(deadline));
      for (int i = count_ - 1; i >= 0; --i) {
        if (open_[i].revents == 0) continue;
        int fd = open_[i].fd;
        open_[i] = open_[--count_];
        if (greeted(fd, deadline)) return fd;
        close(fd);
      }
    }
    return -1;
  }

 private:
  pollfd open_[most_addresses];
  int count_ = 0;
};

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      pollfd writable = {fd, POLLOUT, 0};
      if (poll(&writable, 1, 1000) == 0) return false;
      continue;
    }
    if (n < 0) return false;
    bytes.remove_prefix(size_t(n));
  }
  return true;
}

void pause_briefly() {
  timespec pause = {0, 20'000'000};
  nanosleep(&pause, nullptr);
}

}  // namespace

Status ask_meeting(const char* addresses, std::string_view question, const Deadlines& deadlines, char* answer,
                   size_t answer_bytes) {
  bool asked = false;
  while (now_ns() < (asked ? deadlines.answered_ns : deadlines.greeted_ns)) {
    int fd = Attempts(addresses).first(asked ? deadlines.answered_ns : deadlines.greeted_ns);
    if (fd >= 0) {
      asked = true;  // from the first byte on
      bool answered = send_all(fd, question) && read_line(fd, answer, answer_bytes, deadlines.answered_ns);
      close(fd);
      if (answered) return Status::good();
    }
    pause_briefly();
  }
  return asked ? timed_out("no answer") : refused("nobody was there");
}

}  // namespace stretto::platform
