#include "platform/rendezvous_wire.hpp"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace stretto::platform {
namespace {

constexpr int most_fds = 4;  // room for more than the one we want, so that extra ones are seen and closed

union Control {
  char room[CMSG_SPACE(sizeof(int) * most_fds) + CMSG_SPACE(sizeof(ucred))];
  cmsghdr alignment;
};

msghdr header(Message* message, iovec* body, Address* address, Control* control, size_t control_bytes) {
  *body = {message, sizeof *message};
  msghdr h = {};
  h.msg_name = &address->name;
  h.msg_namelen = address->bytes;
  h.msg_iov = body;
  h.msg_iovlen = 1;
  h.msg_control = control_bytes != 0 ? control->room : nullptr;
  h.msg_controllen = control_bytes;
  return h;
}

// Keeps the first descriptor in *fd and closes the others.
void keep_one(const cmsghdr* part, int* fd) {
  size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (size_t i = 0; i < count; ++i) {
    int received;
    memcpy(&received, CMSG_DATA(part) + i * sizeof(int), sizeof received);
    if (*fd < 0)
      *fd = received;
    else
      ::close(received);
  }
}

void read_control(msghdr* h, Letter* letter) {
  for (cmsghdr* part = CMSG_FIRSTHDR(h); part != nullptr; part = CMSG_NXTHDR(h, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_RIGHTS) keep_one(part, &letter->fd);
    if (part->cmsg_type == SCM_CREDENTIALS) {
      ucred sender;
      memcpy(&sender, CMSG_DATA(part), sizeof sender);
      letter->user = sender.uid;
    }
  }
}

}  // namespace

bool Address::operator==(const Address& other) const {
  return bytes == other.bytes && memcmp(&name, &other.name, bytes) == 0;
}

Address rank_address(uint32_t user, const char* job_hash, int local_rank) {
  Address address;
  address.name.sun_family = AF_UNIX;
  char* text = address.name.sun_path + 1;  // the leading zero makes it abstract
  size_t room = sizeof address.name.sun_path - 1;
  int n = snprintf(text, room, "stretto-%u-%s-%d", unsigned(user), job_hash, local_rank);
  address.bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + size_t(n));
  return address;
}

void hash_job(const char* job, char (&text)[64]) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *job != 0; ++job) hash = (hash ^ static_cast<unsigned char>(*job)) * 0x100000001b3u;
  snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
}

Status bind_socket(const Address& address, int* fd) {
  int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return refused("no local socket to be had", errno);
  int yes = 1;
  const char* step = "local sockets do not pass credentials";
  bool done = setsockopt(made, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) == 0;
  if (done) {
    step = "this rank's address is taken or refused";
    done = bind(made, reinterpret_cast<const sockaddr*>(&address.name), address.bytes) == 0;
  }
  if (!done) {
    int error = errno;
    ::close(made);
    return refused(step, error);
  }
  *fd = made;
  return Status::good();
}

int send_message(int socket, const Address& to, const Message& message, int fd) {
  Message body = message;
  Address target = to;
  Control control = {};
  iovec part;
  msghdr h = header(&body, &part, &target, &control, fd < 0 ? 0 : CMSG_SPACE(sizeof(int)));
  if (fd >= 0) {
    cmsghdr* rights = CMSG_FIRSTHDR(&h);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  ssize_t sent;
  do sent = sendmsg(socket, &h, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

int receive_letter(int socket, Letter* letter) {
  *letter = {};
  Control control = {};
  iovec part;
  letter->from.bytes = sizeof letter->from.name;
  msghdr h = header(&letter->message, &part, &letter->from, &control, sizeof control.room);
  ssize_t got;
  do got = recvmsg(socket, &h, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got < 0) return errno;
  letter->from.bytes = h.msg_namelen;
  read_control(&h, letter);
  bool whole = size_t(got) == sizeof letter->message && (h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (whole && memcmp(letter->message.magic, Message{}.magic, sizeof letter->message.magic) == 0) return 0;
  if (letter->fd >= 0) ::close(letter->fd);
  letter->fd = -1;
  return EBADMSG;
}

}  // namespace stretto::platform
