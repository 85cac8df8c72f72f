#include "os/ring_keeper.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/system_random.h"

namespace cluster::os {
namespace {

/// This bit in the serial of a message marks the end of a pass over the queue. No place has a serial with
/// this bit.
constexpr std::uint64_t kMark = std::uint64_t{1} << 63;
/// Space for the messages of all places. The kernel may allow less.
constexpr int kQueueBytes = 1024 * 1024;

struct KeptMessage {
  std::uint64_t serial = 0;
  iovec piece{&serial, sizeof serial};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  msghdr header{};

  KeptMessage() {
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  KeptMessage(const KeptMessage&) = delete;
  KeptMessage& operator=(const KeptMessage&) = delete;
};

int send_kept(const Descriptor& socket, std::uint64_t serial, int ring) {
  KeptMessage message;
  message.serial = serial;
  if (ring < 0) {
    message.header.msg_controllen = 0;
  } else {
    cmsghdr* const rights = CMSG_FIRSTHDR(&message.header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof ring);
    std::memcpy(CMSG_DATA(rights), &ring, sizeof ring);
  }
  return sendmsg(socket.number(), &message.header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ? 0 : errno;
}

}  // namespace

RingKeeper RingKeeper::open(int& error) {
  RingKeeper keeper(Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
  const int number = keeper.socket_.number();
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  socklen_t size = sizeof name;
  // The kernel chooses a name. Once the socket is connected to itself, nobody else can send to the name. The
  // loop below drops messages that another process has sent before.
  const bool connected = number >= 0 &&
                         bind(number, reinterpret_cast<sockaddr*>(&name), sizeof(sa_family_t)) == 0 &&
                         getsockname(number, reinterpret_cast<sockaddr*>(&name), &size) == 0 &&
                         connect(number, reinterpret_cast<sockaddr*>(&name), size) == 0;
  error = connected ? 0 : errno;
  if (!connected) return {};
  setsockopt(number, SOL_SOCKET, SO_SNDBUF, &kQueueBytes, sizeof kQueueBytes);
  for (Kept foreign; keeper.receive(foreign, 0);) {
  }
  return keeper;
}

bool RingKeeper::receive(Kept& kept, int flags) const {
  KeptMessage message;
  if (recvmsg(socket_.number(), &message.header, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0) return false;
  kept.serial = message.serial;
  kept.ring.reset();
  const cmsghdr* const rights = CMSG_FIRSTHDR(&message.header);
  if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS && rights->cmsg_len == CMSG_LEN(sizeof(int))) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(rights), sizeof number);
    kept.ring = Descriptor(number);
  }
  return true;
}

void RingKeeper::read_from(std::size_t message) const {
  const int bytes = static_cast<int>(message * sizeof(std::uint64_t));
  setsockopt(socket_.number(), SOL_SOCKET, SO_PEEK_OFF, &bytes, sizeof bytes);
}

int RingKeeper::keep(std::uint64_t serial, const Descriptor& ring) const {
  return send_kept(socket_, serial, ring.number());
}

Descriptor RingKeeper::copy_of(std::uint64_t serial) const {
  read_from(0);
  Kept kept;
  while (receive(kept, MSG_PEEK)) {  // each call moves the position to the next message
    if (kept.serial == serial) return std::move(kept.ring);
  }
  return {};
}

/// For each message that remains, first appends a copy to the queue and then removes the original. If the
/// process dies in between, the queue has two copies, or a mark of a pass that never ended. Neither does
/// harm.
std::vector<Descriptor> RingKeeper::withdraw(std::span<const std::uint64_t> serials) const {
  std::vector<Descriptor> withdrawn;
  const std::uint64_t mark = SystemRandom().next() | kMark;
  if (serials.empty() || send_kept(socket_, mark, -1) != 0) return withdrawn;
  for (;;) {
    Kept kept;
    read_from(0);
    if (!receive(kept, MSG_PEEK)) return withdrawn;
    const bool leaves = std::find(serials.begin(), serials.end(), kept.serial) != serials.end();
    const bool stays = !leaves && (kept.serial & kMark) == 0;
    if (stays && send_kept(socket_, kept.serial, kept.ring.number()) != 0) return withdrawn;
    Kept original;
    receive(original, 0);
    if (kept.serial == mark) return withdrawn;
    if (leaves) withdrawn.push_back(std::move(original.ring));
  }
}

}  // namespace cluster::os
