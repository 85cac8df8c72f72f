#include "os/netlink.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "os/descriptor.h"

namespace cluster::os {
namespace {

constexpr std::size_t kAnswerMax = 64 * 1024;  // the kernel fills at most 32 KiB at a time

template <typename Body>
struct Request {
  nlmsghdr header{};
  Body body{};

  Request(std::uint16_t type, std::uint16_t flags) {
    header.nlmsg_len = NLMSG_LENGTH(sizeof body);
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    header.nlmsg_seq = 1;
  }
};

struct RouteQuestion {
  rtmsg route{};
  rtattr attribute{};
  std::byte ip[16]{};
};

int error_in(ConstBytes payload) {
  nlmsgerr report{};
  if (payload.size() < sizeof report.error) return EBADMSG;
  std::memcpy(&report.error, payload.data(), sizeof report.error);
  return -report.error;
}

/// What one datagram of the kernel says about the datagrams that follow.
struct Walk {
  bool done = false;    ///< it is the last of a dump
  bool single = false;  ///< it was no part of a dump
  int error = 0;
};

template <typename Visitor>
Walk walk(ConstBytes answer, Visitor&& visit) {
  Walk result;
  while (answer.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header;
    std::memcpy(&header, answer.data(), sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > answer.size()) return {.error = EBADMSG};
    const ConstBytes payload = answer.subspan(sizeof header, header.nlmsg_len - sizeof header);
    if (header.nlmsg_type == NLMSG_DONE) return {.done = true};
    if (header.nlmsg_type == NLMSG_ERROR) return {.error = error_in(payload)};
    visit(header.nlmsg_type, payload);
    result.single = (header.nlmsg_flags & NLM_F_MULTI) == 0;
    const std::size_t step = NLMSG_ALIGN(header.nlmsg_len);
    if (step >= answer.size()) break;
    answer = answer.subspan(step);
  }
  return result;
}

template <typename Body>
bool send_request(int socket, const Request<Body>& request) {
  return send(socket, &request, request.header.nlmsg_len, 0) >= 0;
}

/// 0, or an errno.
template <typename Body>
int ask(const Request<Body>& request, const std::function<void(ConstBytes)>& visit) {
  const Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket || !send_request(socket.number(), request)) return errno;
  std::vector<std::byte> buffer(kAnswerMax);
  for (;;) {
    const ssize_t got = recv(socket.number(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 ? errno : EBADMSG;
    const auto each = [&](std::uint16_t, ConstBytes message) { visit(message); };
    const Walk walked = walk({buffer.data(), static_cast<std::size_t>(got)}, each);
    if (walked.done || walked.single || walked.error != 0) return walked.error;
  }
}

Request<rtgenmsg> dump_request(std::uint16_t type) {
  Request<rtgenmsg> request(type, NLM_F_DUMP);
  request.body.rtgen_family = AF_UNSPEC;
  return request;
}

}  // namespace

int netlink_dump(std::uint16_t request, const std::function<void(ConstBytes)>& visit) {
  return ask(dump_request(request), visit);
}

bool ask_netlink(int socket, std::uint16_t request) { return send_request(socket, dump_request(request)); }

int netlink_route(ConstBytes ip, const std::function<void(ConstBytes)>& visit) {
  Request<RouteQuestion> message(RTM_GETROUTE, 0);
  RouteQuestion& question = message.body;
  question.route.rtm_family = ip.size() == 4 ? AF_INET : AF_INET6;
  question.route.rtm_dst_len = static_cast<unsigned char>(8 * ip.size());
  question.route.rtm_flags = RTM_F_FIB_MATCH;  // the entry itself, with its own prefix and interface
  question.attribute.rta_type = RTA_DST;
  question.attribute.rta_len = static_cast<unsigned short>(RTA_LENGTH(ip.size()));
  std::copy(ip.begin(), ip.end(), question.ip);
  message.header.nlmsg_len =
      static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof question.route) + RTA_LENGTH(ip.size()));
  return ask(message, visit);
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
    const ssize_t got =
        recvfrom(socket, buffer.data(), buffer.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ENOBUFS) {
      result = NetlinkEvents::some_lost;
      continue;
    }
    if (got <= 0) return result;
    if (from.nl_pid != 0) continue;  // from another process
    if (walk({buffer.data(), static_cast<std::size_t>(got)}, visit).done) visit(NLMSG_DONE, {});
  }
}

}  // namespace cluster::os
