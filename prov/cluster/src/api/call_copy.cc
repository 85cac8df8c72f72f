#include "api/call_copy.h"

#include <algorithm>

#include "protocol/ops.h"

namespace cluster::api {

const CallTables ordinary_calls{msg_ops, tagged_ops, rma_ops, atomic_ops};
const CallTables deferred_calls{deferred_msg_ops, deferred_tagged_ops, deferred_rma_ops, deferred_atomic_ops};

template <typename Element>
std::vector<Element> CallCopy::copy(const Element* array, std::size_t count) {
  if (count > std::max(protocol::kIovMax, protocol::kRmaIovMax) || (count > 0 && array == nullptr)) {
    good_ = false;
    return {};
  }
  return {array, array + count};
}

/// libfabric lets an application pass no descriptors at all, so `desc` may be null.
template <typename Message>
void CallCopy::copy_buffers(const Message& message) {
  buffers_ = copy(message.msg_iov, message.iov_count);
  if (message.desc != nullptr) descriptors_ = copy(message.desc, message.iov_count);
}

CallCopy::CallCopy(Kind kind, const fi_msg& message, std::uint64_t flags)
    : kind_(kind), flags_(flags & ~FI_TRIGGER), message_(message) {
  copy_buffers(message);
}

CallCopy::CallCopy(Kind kind, const fi_msg_tagged& message, std::uint64_t flags)
    : kind_(kind), flags_(flags & ~FI_TRIGGER), message_(message) {
  copy_buffers(message);
}

CallCopy::CallCopy(Kind kind, const fi_msg_rma& message, std::uint64_t flags)
    : kind_(kind), flags_(flags & ~FI_TRIGGER), message_(message) {
  copy_buffers(message);
  ranges_ = copy(message.rma_iov, message.rma_iov_count);
}

CallCopy::CallCopy(Kind kind, const fi_msg_atomic& message, const AtomicArrays& arrays, std::uint64_t flags)
    : kind_(kind), flags_(flags & ~FI_TRIGGER), message_(message) {
  operands_ = copy(message.msg_iov, message.iov_count);
  atomic_ranges_ = copy(message.rma_iov, message.rma_iov_count);
  results_ = copy(arrays.results, arrays.result_count);
  compares_ = copy(arrays.compares, arrays.compare_count);
}

void* CallCopy::context() const {
  return std::visit([](const auto& message) { return message.context; }, message_);
}

fi_addr_t CallCopy::peer() const {
  return std::visit([](const auto& message) { return message.addr; }, message_);
}

void CallCopy::set_context(void* context) {
  std::visit([&](auto& message) { message.context = context; }, message_);
}

std::uint64_t CallCopy::capability() const {
  constexpr std::uint64_t kCapabilityOf[] = {FI_MSG, FI_TAGGED, FI_RMA, FI_ATOMIC};
  return kCapabilityOf[message_.index()];
}

ssize_t CallCopy::begin(fid_ep& endpoint, const CallTables& tables) {
  const auto call = [&](auto& message, auto function) {
    message.msg_iov = buffers_.data();
    message.desc = descriptors_.empty() ? nullptr : descriptors_.data();
    return function(&endpoint, &message, flags_);
  };
  if (auto* const message = std::get_if<fi_msg>(&message_))
    return call(*message, kind_ == Kind::send ? tables.msg.sendmsg : tables.msg.recvmsg);
  if (auto* const message = std::get_if<fi_msg_tagged>(&message_))
    return call(*message, kind_ == Kind::send ? tables.tagged.sendmsg : tables.tagged.recvmsg);
  if (auto* const message = std::get_if<fi_msg_rma>(&message_)) {
    message->rma_iov = ranges_.data();
    return call(*message, kind_ == Kind::write ? tables.rma.writemsg : tables.rma.readmsg);
  }
  auto& message = std::get<fi_msg_atomic>(message_);
  message.msg_iov = operands_.data();
  message.desc = nullptr;
  message.rma_iov = atomic_ranges_.data();
  switch (kind_) {
    case Kind::fetch:
      return tables.atomic.readwritemsg(&endpoint, &message, results_.data(), nullptr, results_.size(),
                                        flags_);
    case Kind::compare:
      return tables.atomic.compwritemsg(&endpoint, &message, compares_.data(), nullptr, compares_.size(),
                                        results_.data(), nullptr, results_.size(), flags_);
    default: return tables.atomic.writemsg(&endpoint, &message, flags_);
  }
}

}  // namespace cluster::api
