// Node, service, flags and addresses in hints: source and destination addresses of the entries.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "getinfo_checks.h"

namespace load {
namespace {

std::string text_of(const void* address, std::size_t size) {
  sockaddr_in in{};
  if (address == nullptr || size != sizeof in) return "none";
  std::memcpy(&in, address, sizeof in);
  char ip[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &in.sin_addr, ip, sizeof ip);
  return std::string(ip) + ":" + std::to_string(ntohs(in.sin_port));
}

void* address_bytes(const char* ip, std::uint16_t port) {
  auto* in = static_cast<sockaddr_in*>(std::calloc(1, sizeof(sockaddr_in)));
  in->sin_family = AF_INET;
  in->sin_port = htons(port);
  inet_pton(AF_INET, ip, &in->sin_addr);
  return in;
}

class AddressChecks {
 public:
  AddressChecks(const LibfabricLibrary& core, Expectations& verdict) : core_(core), verdict_(verdict) {}

  void source(const char* what, const GetinfoArguments& question, const fi_info* hints,
              const char* expected) {
    const GetinfoResult answer = put(question, hints);
    verdict_.expect(answer.error == 0, "%s: found, not %d", what, answer.error);
    if (answer.list == nullptr) return;
    const std::string text = text_of(answer.list->src_addr, answer.list->src_addrlen);
    verdict_.expect(text == expected, "%s: the source is %s, not %s", what, expected, text.c_str());
  }
  void destination(const char* what, const GetinfoArguments& question, const fi_info* hints,
                   const char* expected) {
    const GetinfoResult answer = put(question, hints);
    verdict_.expect(answer.error == 0, "%s: found, not %d", what, answer.error);
    if (answer.list == nullptr) return;
    const std::string text = text_of(answer.list->dest_addr, answer.list->dest_addrlen);
    verdict_.expect(text == expected, "%s: the destination is %s, not %s", what, expected, text.c_str());
    verdict_.expect(answer.list->src_addr != nullptr, "%s: there is a source", what);
  }
  void nothing(const char* what, const GetinfoArguments& question, const fi_info* hints) {
    verdict_.expect(put(question, hints).error != 0, "%s: refused", what);
  }

 private:
  GetinfoResult put(GetinfoArguments question, const fi_info* hints) {
    question.version = core_.version;
    return ask(core_.calls, question, hints);
  }

  const LibfabricLibrary& core_;
  Expectations& verdict_;
};

void ask_names(AddressChecks& asking) {
  asking.source("own address", {.node = "127.0.0.1", .service = "9228", .flags = FI_SOURCE}, nullptr,
                "127.0.0.1:9228");
  asking.source("an address that is local by a route",
                {.node = "127.0.1.1", .service = "9228", .flags = FI_SOURCE}, nullptr, "127.0.1.1:9228");
  asking.source("own address in libfabric's text form",
                {.node = "fi_sockaddr_in://127.0.0.1:9229", .flags = FI_SOURCE}, nullptr, "127.0.0.1:9229");
  asking.source("the way to a peer", {.node = "127.0.0.2", .service = "9228"}, nullptr, "127.0.0.1:0");
  asking.destination("a peer", {.node = "127.0.0.2", .service = "9228"}, nullptr, "127.0.0.2:9228");
  asking.destination("a peer by number only",
                     {.node = "127.0.0.2", .service = "9228", .flags = FI_NUMERICHOST}, nullptr,
                     "127.0.0.2:9228");
  asking.nothing("FI_SOURCE alone", {.flags = FI_SOURCE}, nullptr);
  asking.nothing("a node that does not exist", {.node = "g00n13s", .service = "9228"}, nullptr);
  asking.nothing("a name where a number is promised", {.node = "localhost", .flags = FI_NUMERICHOST},
                 nullptr);
  asking.nothing("a service that does not exist", {.node = "127.0.0.1", .service = "g00n13s"}, nullptr);
  asking.nothing("an address of another host", {.node = "192.0.2.254", .service = "1", .flags = FI_SOURCE},
                 nullptr);
}

void ask_hints(const LibfabricLibrary& core, AddressChecks& asking) {
  const Info from = new_hints(core.calls);
  from->src_addr = address_bytes("127.0.0.1", 4711);
  from->src_addrlen = sizeof(sockaddr_in);
  asking.source("source in the hints", {}, from.get(), "127.0.0.1:4711");
  from->addr_format = FI_SOCKADDR_IN;
  asking.source("source in the hints, with a format", {}, from.get(), "127.0.0.1:4711");
  asking.source("node beats hints", {.node = "127.0.0.1", .service = "5", .flags = FI_SOURCE}, from.get(),
                "127.0.0.1:5");
  from->addr_format = FI_SOCKADDR_IN6;
  asking.nothing("an address of another format", {}, from.get());

  const Info to = new_hints(core.calls);
  to->dest_addr = address_bytes("127.0.0.3", 4712);
  to->dest_addrlen = sizeof(sockaddr_in);
  asking.source("the way to a peer in the hints", {}, to.get(), "127.0.0.1:0");
  asking.destination("a peer in the hints", {}, to.get(), "127.0.0.3:4712");
  to->dest_addrlen = 3;
  asking.nothing("an address cut short", {}, to.get());

  const Info text = new_hints(core.calls);
  text->addr_format = FI_ADDR_STR;
  text->src_addr = strdup("fi_sockaddr_in://127.0.0.1:4713");
  text->src_addrlen = std::strlen("fi_sockaddr_in://127.0.0.1:4713") + 1;
  asking.nothing("source as text", {}, text.get());
}

}  // namespace

void check_addresses(const LibfabricLibrary& core, Expectations& verdict) {
  AddressChecks asking(core, verdict);
  ask_names(asking);
  ask_hints(core, asking);
}

}  // namespace load
