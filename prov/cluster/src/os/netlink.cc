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

/// What one answer of the kernel says of those that follow.
struct Walk {
  bool more = true;
  int error = 0;
};

Walk walk(ConstBytes answer, const std::function<void(ConstBytes)>& visit) {
  while (answer.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header;
    std::memcpy(&header, answer.data(), sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > answer.size()) return {false, EBADMSG};
    const ConstBytes payload = answer.subspan(sizeof header, header.nlmsg_len - sizeof header);
    if (header.nlmsg_type == NLMSG_DONE) return {false, 0};
    if (header.nlmsg_type == NLMSG_ERROR) return {false, error_in(payload)};
    visit(payload);
    if ((header.nlmsg_flags & NLM_F_MULTI) == 0) return {false, 0};
    const std::size_t step = NLMSG_ALIGN(header.nlmsg_len);
    if (step >= answer.size()) break;
    answer = answer.subspan(step);
  }
  return {};
}

template <typename Body>
int ask(const Request<Body>& request, const std::function<void(ConstBytes)>& visit) {
  const Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket || send(socket.number(), &request, request.header.nlmsg_len, 0) < 0) return errno;
  std::vector<std::byte> buffer(kAnswerMax);
  for (;;) {
    const ssize_t got = recv(socket.number(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 ? errno : EBADMSG;
    const Walk walked = walk({buffer.data(), static_cast<std::size_t>(got)}, visit);
    if (!walked.more) return walked.error;
  }
}

}  // namespace

int netlink_dump(std::uint16_t request, const std::function<void(ConstBytes)>& visit) {
  Request<rtgenmsg> message(request, NLM_F_DUMP);
  message.body.rtgen_family = AF_UNSPEC;
  return ask(message, visit);
}

int netlink_route(ConstBytes ip, const std::function<void(ConstBytes)>& visit) {
  Request<RouteQuestion> message(RTM_GETROUTE, 0);
  RouteQuestion& question = message.body;
  question.route.rtm_family = ip.size() == 4 ? AF_INET : AF_INET6;
  question.route.rtm_dst_len = static_cast<unsigned char>(8 * ip.size());
  question.route.rtm_flags = RTM_F_FIB_MATCH;  // the entry itself, with its own prefix and interface
  question.attribute.rta_type = RTA_DST;
  question.attribute.rta_len = static_cast<unsigned short>(RTA_LENGTH(ip.size()));
  std::copy(ip.begin(), ip.end(), question.ip);
  message.header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof question.route) + RTA_LENGTH(ip.size()));
  return ask(message, visit);
}

}  // namespace cluster::os
