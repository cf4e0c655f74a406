// What the ranks' sockets say to each other in a rendezvous: addresses and messages, apart from the waiting.
#pragma once
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>

#include "base/status.hpp"

namespace stretto::platform {

struct Address {
  sockaddr_un name = {};
  socklen_t bytes = 0;
  bool operator==(const Address& other) const;
};

// The abstract address of a rank: user, job and local rank, e.g. "\0stretto-1000-0123456789abcdef-3".
Address rank_address(uint32_t user, const char* job_hash, int local_rank);

// 16 hexadecimal digits (64-bit FNV-1a), into `text`.
void hash_job(const char* job, char (&text)[64]);

// From a rank to local rank 0, the answer with the descriptor; from every rank to every other.
enum class Kind : uint32_t { greeting = 1, object = 2, exchanged = 3 };

struct Message {
  char magic[8] = {'S', 'T', 'R', 'E', 'T', 'T', 'O', '1'};
  Kind kind = Kind::greeting;
  int32_t local_rank = -1;  // of the sender (greeting, exchanged), of the receiver (object)
  char job_hash[16] = {};
};
static_assert(sizeof(Message) == 32);

// A bound, non-blocking, close-on-exec socket that receives its senders' credentials.
Status bind_socket(const Address& address, int* fd);

// Sends the message and, unless fd is -1, the descriptor. Returns 0 or an errno value.
int send_message(int socket, const Address& to, const Message& message, int fd);

struct Letter {
  Message message;
  Address from;
  uint32_t user = UINT32_MAX;  // of the sender, as the kernel states it
  int fd = -1;                 // the descriptor that came along, owned by the receiver
};

// Takes one datagram off the socket. 0: `letter` holds one whose size and magic are right; EBADMSG: one was dropped, with
// whatever descriptors it carried; else an errno value (EAGAIN: none there).
int receive_letter(int socket, Letter* letter);

}  // namespace stretto::platform
