// The ops tables of an FI_EP_MSG endpoint. Each call puts the peer's handle (kPeer) in the place of the
// address that the application passes. Then it makes the same call through the table of endpoints without
// connections, such as msg_ops.
#include <tuple>

#include "api/endpoint.h"
#include "api/ops_tables.h"

namespace cluster::api {
namespace {

constexpr fi_addr_t kPeer = engine::ConnectionEndpoint::kPeer;

ConnectedEnd& end_of(fid_ep* handle) { return *endpoint_of(handle).connected_end(); }

/// Makes the call with the peer's address. `at`: the position of the address among the arguments.
template <auto* table, auto member, std::size_t at, typename... Arguments>
ssize_t call(fid_ep* handle, Arguments... arguments) noexcept {
  std::tuple<Arguments...> all(arguments...);
  std::get<at>(all) = kPeer;
  return std::apply([&](Arguments... with_peer) { return (table->*member)(handle, with_peer...); }, all);
}

/// Does the same as call(), for a call with a message structure.
template <auto* table, auto member, typename Message, typename... Arguments>
ssize_t call_with(fid_ep* handle, const Message* message, Arguments... arguments) noexcept {
  Message to_peer = *message;
  to_peer.addr = kPeer;
  return (table->*member)(handle, &to_peer, arguments...);
}

template <auto inner, typename... Arguments>
ssize_t transmit(fid_ep* handle, Arguments... arguments) noexcept {
  if (!end_of(handle).connected()) return -FI_ENOTCONN;
  return inner(handle, arguments...);
}

/// A receive may be posted before the connection exists. After the connection has ended, a receive takes a
/// message that has arrived before the end. If there is no such message, the receive is canceled.
template <auto inner, typename... Arguments>
ssize_t receive(fid_ep* handle, Arguments... arguments) noexcept {
  const ssize_t result = inner(handle, arguments...);
  if (result == 0 && end_of(handle).over()) end_of(handle).cancel_receives();
  return result;
}

// The following functions return the entry that replaces `member`. Their argument serves only to deduce the
// types of the call.

template <auto* table, auto member, std::size_t at, typename Table, typename... Arguments>
constexpr auto transmit_entry(ssize_t (*Table::*)(fid_ep*, Arguments...)) {
  return &transmit<&call<table, member, at, Arguments...>, Arguments...>;
}
template <auto* table, auto member, typename Table, typename Message, typename... Arguments>
constexpr auto transmit_message_entry(ssize_t (*Table::*)(fid_ep*, const Message*, Arguments...)) {
  return &transmit<&call_with<table, member, Message, Arguments...>, const Message*, Arguments...>;
}
template <auto* table, auto member, std::size_t at, typename Table, typename... Arguments>
constexpr auto receive_entry(ssize_t (*Table::*)(fid_ep*, Arguments...)) {
  return &receive<&call<table, member, at, Arguments...>, Arguments...>;
}
template <auto* table, auto member, typename Table, typename Message, typename... Arguments>
constexpr auto receive_message_entry(ssize_t (*Table::*)(fid_ep*, const Message*, Arguments...)) {
  return &receive<&call_with<table, member, Message, Arguments...>, const Message*, Arguments...>;
}

template <auto* table, auto member, std::size_t at>
constexpr auto kTransmit = transmit_entry<table, member, at>(member);
template <auto* table, auto member>
constexpr auto kTransmitMessage = transmit_message_entry<table, member>(member);
template <auto* table, auto member, std::size_t at>
constexpr auto kReceive = receive_entry<table, member, at>(member);
template <auto* table, auto member>
constexpr auto kReceiveMessage = receive_message_entry<table, member>(member);

/// fi_msg and fi_tagged have the same calls, and the address has the same position among the arguments.
template <typename Table, Table* table>
constexpr Table message_table() {
  return {
      .size = sizeof(Table),
      .recv = kReceive<table, &Table::recv, 3>,
      .recvv = kReceive<table, &Table::recvv, 3>,
      .recvmsg = kReceiveMessage<table, &Table::recvmsg>,
      .send = kTransmit<table, &Table::send, 3>,
      .sendv = kTransmit<table, &Table::sendv, 3>,
      .sendmsg = kTransmitMessage<table, &Table::sendmsg>,
      .inject = kTransmit<table, &Table::inject, 2>,
      .senddata = kTransmit<table, &Table::senddata, 4>,
      .injectdata = kTransmit<table, &Table::injectdata, 3>,
  };
}

// The fi_atomicvalid calls have no address that could be replaced.

int write_valid(fid_ep* handle, fi_datatype type, fi_op op, std::size_t* count) noexcept {
  return atomic_ops.writevalid(handle, type, op, count);
}
int readwrite_valid(fid_ep* handle, fi_datatype type, fi_op op, std::size_t* count) noexcept {
  return atomic_ops.readwritevalid(handle, type, op, count);
}
int compwrite_valid(fid_ep* handle, fi_datatype type, fi_op op, std::size_t* count) noexcept {
  return atomic_ops.compwritevalid(handle, type, op, count);
}

}  // namespace

constinit fi_ops_msg connected_msg_ops = message_table<fi_ops_msg, &msg_ops>();
constinit fi_ops_tagged connected_tagged_ops = message_table<fi_ops_tagged, &tagged_ops>();

constinit fi_ops_rma connected_rma_ops = {
    .size = sizeof(fi_ops_rma),
    .read = kTransmit<&rma_ops, &fi_ops_rma::read, 3>,
    .readv = kTransmit<&rma_ops, &fi_ops_rma::readv, 3>,
    .readmsg = kTransmitMessage<&rma_ops, &fi_ops_rma::readmsg>,
    .write = kTransmit<&rma_ops, &fi_ops_rma::write, 3>,
    .writev = kTransmit<&rma_ops, &fi_ops_rma::writev, 3>,
    .writemsg = kTransmitMessage<&rma_ops, &fi_ops_rma::writemsg>,
    .inject = kTransmit<&rma_ops, &fi_ops_rma::inject, 2>,
    .writedata = kTransmit<&rma_ops, &fi_ops_rma::writedata, 4>,
    .injectdata = kTransmit<&rma_ops, &fi_ops_rma::injectdata, 3>,
};

constinit fi_ops_atomic connected_atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    .write = kTransmit<&atomic_ops, &fi_ops_atomic::write, 3>,
    .writev = kTransmit<&atomic_ops, &fi_ops_atomic::writev, 3>,
    .writemsg = kTransmitMessage<&atomic_ops, &fi_ops_atomic::writemsg>,
    .inject = kTransmit<&atomic_ops, &fi_ops_atomic::inject, 2>,
    .readwrite = kTransmit<&atomic_ops, &fi_ops_atomic::readwrite, 5>,
    .readwritev = kTransmit<&atomic_ops, &fi_ops_atomic::readwritev, 6>,
    .readwritemsg = kTransmitMessage<&atomic_ops, &fi_ops_atomic::readwritemsg>,
    .compwrite = kTransmit<&atomic_ops, &fi_ops_atomic::compwrite, 7>,
    .compwritev = kTransmit<&atomic_ops, &fi_ops_atomic::compwritev, 9>,
    .compwritemsg = kTransmitMessage<&atomic_ops, &fi_ops_atomic::compwritemsg>,
    .writevalid = write_valid,
    .readwritevalid = readwrite_valid,
    .compwritevalid = compwrite_valid,
};

}  // namespace cluster::api
