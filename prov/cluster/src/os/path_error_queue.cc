#include "os/path_error_queue.h"

#include <linux/errqueue.h>
#include <linux/icmpv6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/end_of_memory.h"

namespace cluster::os {
namespace {

bool prohibits(const sock_extended_err& report) {
  if (report.ee_origin == SO_EE_ORIGIN_ICMP6) return report.ee_errno == EACCES;
  return report.ee_type == ICMP_DEST_UNREACH &&
         (report.ee_code == ICMP_NET_ANO || report.ee_code == ICMP_HOST_ANO ||
          report.ee_code == ICMP_PKT_FILTERED);
}

/// `offender`: the host that sent the error. Only the peer's host knows whether a port is closed. Any other
/// host that reports a closed port is a firewall.
Status status_of(const sock_extended_err& report, const SocketAddress& peer, const SocketAddress& offender) {
  // Ignores local errors, such as a frame that is too long, because the sending call has already returned
  // them.
  if (report.ee_origin != SO_EE_ORIGIN_ICMP && report.ee_origin != SO_EE_ORIGIN_ICMP6) return Status::ok;
  if (prohibits(report)) return Status::prohibited;
  switch (report.ee_errno) {
    case ECONNREFUSED:
      return offender.empty() || offender.same_host(peer) ? Status::refused : Status::prohibited;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENONET: return Status::unreachable;
    default: return Status::ok;
  }
}

/// Takes one entry from the error queue. Returns false if there is none.
bool take_report(int socket, link::PathError& error) {
  sockaddr_storage peer;
  // The kernel delivers the bytes that follow the quoted UDP header. Unless the error is forged, they are the
  // beginning of a frame that this endpoint sent.
  iovec quote{error.quoted.data(), error.quoted.size()};
  alignas(cmsghdr) char control[512];
  msghdr message{};
  message.msg_name = &peer;
  message.msg_namelen = sizeof peer;
  message.msg_iov = &quote;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT);
  if (got < 0) return false;
  error.status = Status::ok;
  error.quoted_size = static_cast<std::uint8_t>(got);
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    const bool v4 = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR;
    const bool v6 = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR;
    if (!v4 && !v6) continue;
    sock_extended_err report;
    std::memcpy(&report, CMSG_DATA(c), sizeof report);
    sockaddr_storage offender{};
    const std::size_t left = c->cmsg_len - CMSG_LEN(sizeof report);
    std::memcpy(&offender, CMSG_DATA(c) + sizeof report, std::min(left, sizeof offender));
    error.peer = SocketAddress::from(reinterpret_cast<sockaddr*>(&peer), message.msg_namelen);
    error.status = status_of(report, error.peer,
                             SocketAddress::from(reinterpret_cast<sockaddr*>(&offender), sizeof offender));
  }
  return true;
}

}  // namespace

bool PathErrorGate::admit(Time now) {
  if (now >= since_ + kInterval) {
    since_ = now;
    count_ = 0;
  }
  if (++count_ <= kPerInterval) return true;
  since_ = now;
  shut_ = true;
  return false;
}

bool PathErrorGate::reopen(Time now) {
  if (!shut_ || now < since_ + kShut) return false;
  since_ = now;
  count_ = 0;
  shut_ = false;
  return true;
}

void PathErrorQueue::add(int socket) {
  const std::lock_guard lock(mutex_);
  sockets_[count_++] = socket;
  wish_for_errors(!gate_.shut());
}

void PathErrorQueue::remove(int socket) {
  const std::lock_guard lock(mutex_);
  count_ = static_cast<std::size_t>(std::remove(sockets_.begin(), sockets_.begin() + count_, socket) -
                                    sockets_.begin());
}

/// Tells the kernel whether to queue errors. If `wanted` is false, the kernel also empties the queue, but
/// keeps the error that the next call on the socket would return. This function clears that error, too, by
/// reading SO_ERROR.
void PathErrorQueue::wish_for_errors(bool wanted) {
  const bool v6 = family_ == SocketAddress::Family::v6;
  const int value = wanted ? 1 : 0;
  for (const int socket : std::span(sockets_).first(count_)) {
    setsockopt(socket, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVERR : IP_RECVERR, &value, sizeof value);
    int last = 0;
    socklen_t size = sizeof last;
    if (!wanted) getsockopt(socket, SOL_SOCKET, SO_ERROR, &last, &size);
  }
}

void PathErrorQueue::drain(Time now) {
  const std::lock_guard lock(mutex_);
  if (gate_.reopen(now)) wish_for_errors(true);
  for (bool any = true; any && !gate_.shut();) {
    any = false;
    for (const int socket : std::span(sockets_).first(count_)) any |= !gate_.shut() && take_from(socket, now);
  }
}

bool PathErrorQueue::take_from(int socket, Time now) {
  link::PathError error;
  if (!take_report(socket, error)) return false;
  if (!gate_.admit(now)) wish_for_errors(false);
  // If there is no memory for the error, it is lost, as are the errors that the kernel drops.
  if (error.status != Status::ok) enough_memory_for([&] { keep(error); });
  return true;
}

void PathErrorQueue::keep(const link::PathError& error) {
  kept_.resize(kKept);
  if (waiting_ == kKept) {
    first_ = (first_ + 1) % kKept;
    --waiting_;
  }
  kept_[(first_ + waiting_++) % kKept] = error;
}

void PathErrorQueue::add_prohibited(const link::OutFrame& frame) {
  link::PathError error;
  error.peer = frame.path->to;
  error.status = Status::prohibited;
  for (std::size_t i = 0; i < frame.count && error.quoted_size < error.quoted.size(); ++i) {
    const std::size_t part = std::min(frame.pieces[i].size(), error.quoted.size() - error.quoted_size);
    std::memcpy(error.quoted.data() + error.quoted_size, frame.pieces[i].data(), part);
    error.quoted_size = static_cast<std::uint8_t>(error.quoted_size + part);
  }
  const std::lock_guard lock(mutex_);
  enough_memory_for([&] { keep(error); });
}

std::size_t PathErrorQueue::take(std::span<link::PathError> errors) {
  const std::lock_guard lock(mutex_);
  const std::size_t count = std::min(errors.size(), waiting_);
  for (link::PathError& error : errors.first(count)) {
    error = kept_[first_];
    first_ = (first_ + 1) % kKept;
  }
  waiting_ -= count;
  return count;
}

}  // namespace cluster::os
