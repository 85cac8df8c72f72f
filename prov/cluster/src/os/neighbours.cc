#include "os/neighbours.h"

#include <linux/neighbour.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "os/netlink.h"

namespace cluster::os {
namespace {

constexpr unsigned kValid = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY;
constexpr int kStaleAnswers = 4;  // to earlier questions, at most
constexpr std::size_t kAnswerMax = 1024;

struct Question {
  nlmsghdr header;
  ndmsg body;
  rtattr name;
  std::array<std::byte, 16> host;
};

Question question_for(const SocketAddress& host, int index, std::uint32_t number) {
  const ConstBytes ip = host.ip();
  Question question{};
  question.header.nlmsg_len = static_cast<std::uint32_t>(offsetof(Question, host) + ip.size());
  question.header.nlmsg_type = RTM_GETNEIGH;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.header.nlmsg_seq = number;
  question.body.ndm_family = host.family() == SocketAddress::Family::v6 ? AF_INET6 : AF_INET;
  question.body.ndm_ifindex = index;
  question.name.rta_type = NDA_DST;
  question.name.rta_len = static_cast<std::uint16_t>(RTA_LENGTH(ip.size()));
  std::copy(ip.begin(), ip.end(), question.host.begin());
  return question;
}

/// Nothing unless it is an Ethernet address that the kernel would use.
std::optional<HardwareAddress> read_answer(ConstBytes answer) {
  nlmsghdr header;
  ndmsg body;
  if (answer.size() < sizeof header + sizeof body) return std::nullopt;
  std::memcpy(&header, answer.data(), sizeof header);
  std::memcpy(&body, answer.data() + sizeof header, sizeof body);
  if (header.nlmsg_type != RTM_NEWNEIGH || (body.ndm_state & kValid) == 0) return std::nullopt;
  std::optional<HardwareAddress> address;
  each_attribute(answer.subspan(sizeof header + sizeof body), [&](unsigned type, ConstBytes value) {
    if (type != NDA_LLADDR || value.size() != HardwareAddress{}.size()) return;
    std::copy(value.begin(), value.end(), address.emplace().begin());
  });
  return address;
}

}  // namespace

Neighbours::Neighbours(int index)
    : index_(index), socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) {}

const HardwareAddress* Neighbours::find(const SocketAddress& host, Time now) {
  Entry& entry = entries_[host.with_port(0).hash() % kPlaces];
  const bool theirs = entry.host.same_host(host);
  if (now < entry.due) return theirs && entry.address ? &*entry.address : nullptr;
  entry.host = host;
  entry.address = ask(host);
  entry.due = now + (entry.address ? kTrusted : kUnknown);
  return nullptr;
}

/// The kernel answers at once, before the question's own call returns.
std::optional<HardwareAddress> Neighbours::ask(const SocketAddress& host) {
  const Question question = question_for(host, index_, ++questions_);
  if (::send(socket_.number(), &question, question.header.nlmsg_len, MSG_DONTWAIT) < 0) return std::nullopt;
  alignas(nlmsghdr) std::array<std::byte, kAnswerMax> answer;
  for (int i = 0; i <= kStaleAnswers; ++i) {
    const ssize_t got = ::recv(socket_.number(), answer.data(), answer.size(), MSG_DONTWAIT);
    if (got < static_cast<ssize_t>(sizeof(nlmsghdr))) return std::nullopt;
    nlmsghdr header;
    std::memcpy(&header, answer.data(), sizeof header);
    if (header.nlmsg_seq == questions_) return read_answer({answer.data(), static_cast<std::size_t>(got)});
  }
  return std::nullopt;
}

}  // namespace cluster::os
