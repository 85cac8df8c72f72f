// Asks the kernel questions through netlink sockets, and reads its answers.
#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "os/descriptor.h"

namespace cluster::os {

inline constexpr std::size_t kAnswerMax = 64 * 1024;  // the kernel sends at most 32 KiB in one answer

/// Reads the header at the beginning of a message. Returns zeros if the message is too short.
template <typename Head>
Head head_of(ConstBytes message) {
  Head head{};
  if (message.size() >= NLMSG_ALIGN(sizeof head)) std::memcpy(&head, message.data(), sizeof head);
  return head;
}

/// Calls visit(type, value) for each attribute in `attributes`.
template <typename Visitor>
void each_attribute(ConstBytes attributes, Visitor&& visit) {
  while (attributes.size() >= sizeof(rtattr)) {
    const auto head = head_of<rtattr>(attributes);
    if (head.rta_len < sizeof head || head.rta_len > attributes.size()) return;
    visit(static_cast<unsigned>(head.rta_type & NLA_TYPE_MASK),
          attributes.subspan(sizeof head, head.rta_len - sizeof head));
    attributes = attributes.subspan(std::min<std::size_t>(RTA_ALIGN(head.rta_len), attributes.size()));
  }
}
template <typename Head, typename Visitor>
void each_attribute_behind(ConstBytes message, Visitor&& visit) {
  each_attribute(message.subspan(std::min<std::size_t>(NLMSG_ALIGN(sizeof(Head)), message.size())), visit);
}

template <typename Number>
void read_number(ConstBytes value, Number& number) {
  if (value.size() >= sizeof number) std::memcpy(&number, value.data(), sizeof number);
}

/// `protocol`: NETLINK_ROUTE or NETLINK_SOCK_DIAG.
inline Descriptor netlink_socket(int protocol) {
  return Descriptor(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
}

template <typename Body>
struct Request {
  nlmsghdr header{};
  Body body{};

  Request(std::uint16_t type, std::uint16_t flags) {
    header.nlmsg_len = NLMSG_LENGTH(sizeof body);
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  }
};

/// Calls visit(payload) for each answer in one datagram. Returns true if more datagrams follow. If none
/// follow, sets `error` to an errno or 0.
template <typename Visitor>
bool read_answers(ConstBytes answers, Visitor&& visit, int& error) {
  bool more = true;
  while (answers.size() >= sizeof(nlmsghdr)) {
    const auto header = head_of<nlmsghdr>(answers);
    error = EBADMSG;
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > answers.size()) return false;
    const ConstBytes payload = answers.subspan(sizeof header, header.nlmsg_len - sizeof header);
    error = header.nlmsg_type == NLMSG_ERROR ? -head_of<nlmsgerr>(payload).error : 0;
    if (header.nlmsg_type == NLMSG_ERROR || header.nlmsg_type == NLMSG_DONE) return false;
    visit(payload);
    more = (header.nlmsg_flags & NLM_F_MULTI) != 0;
    answers = answers.subspan(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), answers.size()));
  }
  return more;
}

/// Sends the request and calls visit(payload) for every answer. Returns 0, or an errno if answers are
/// missing. The answers that visit() got before the failure are valid.
template <typename Body, typename Visitor>
int ask(const Descriptor& socket, const Request<Body>& request, Visitor&& visit) {
  if (!socket || send(socket.number(), &request, request.header.nlmsg_len, 0) < 0) return errno;
  std::vector<std::byte> buffer(kAnswerMax);
  for (;;) {
    const ssize_t got = recv(socket.number(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 ? errno : EBADMSG;
    int error = 0;
    if (!read_answers(ConstBytes(buffer).first(static_cast<std::size_t>(got)), visit, error)) return error;
  }
}

}  // namespace cluster::os
