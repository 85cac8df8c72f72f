#include "os/netlink.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <vector>

#include "os/descriptor.h"

namespace cluster::os {
namespace {

constexpr std::size_t kAnswerMax = 64 * 1024;  // the kernel fills at most 32 KiB at a time

enum class DumpState { more, done, failed };

template <typename Visitor>
DumpState walk(ConstBytes answer, Visitor&& visit) {
  while (answer.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header;
    std::memcpy(&header, answer.data(), sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > answer.size()) return DumpState::failed;
    if (header.nlmsg_type == NLMSG_DONE) return DumpState::done;
    if (header.nlmsg_type == NLMSG_ERROR) return DumpState::failed;
    visit(header.nlmsg_type, answer.subspan(sizeof header, header.nlmsg_len - sizeof header));
    const std::size_t step = NLMSG_ALIGN(header.nlmsg_len);
    if (step >= answer.size()) break;
    answer = answer.subspan(step);
  }
  return DumpState::more;
}

}  // namespace

bool ask_netlink(int socket, std::uint16_t request) {
  struct {
    nlmsghdr header;
    rtgenmsg body;
  } message{};
  message.header.nlmsg_len = NLMSG_LENGTH(sizeof message.body);
  message.header.nlmsg_type = request;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  message.header.nlmsg_seq = 1;
  message.body.rtgen_family = AF_UNSPEC;
  return send(socket, &message, message.header.nlmsg_len, 0) >= 0;
}

bool netlink_dump(std::uint16_t request, const std::function<void(ConstBytes)>& visit) {
  const Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket || !ask_netlink(socket.number(), request)) return false;
  std::vector<std::byte> buffer(kAnswerMax);
  for (;;) {
    const ssize_t got = recv(socket.number(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    const auto each = [&](std::uint16_t, ConstBytes message) { visit(message); };
    const DumpState state = walk({buffer.data(), static_cast<std::size_t>(got)}, each);
    if (state != DumpState::more) return state == DumpState::done;
  }
}

Descriptor open_netlink_events() {
  Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (socket && bind(socket.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
  return socket;
}

NetlinkEvents read_netlink_events(int socket, const std::function<void(std::uint16_t, ConstBytes)>& visit) {
  std::vector<std::byte> buffer(kAnswerMax);
  NetlinkEvents result = NetlinkEvents::all;
  for (;;) {
    sockaddr_nl from{};
    socklen_t size = sizeof from;
    const ssize_t got = recvfrom(socket, buffer.data(), buffer.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ENOBUFS) {
      result = NetlinkEvents::some_lost;
      continue;
    }
    if (got <= 0) return result;
    if (from.nl_pid != 0) continue;  // from another process
    if (walk({buffer.data(), static_cast<std::size_t>(got)}, visit) == DumpState::done) visit(NLMSG_DONE, {});
  }
}

}  // namespace cluster::os
