// A pipeline in C++: each process has two threads, each of them a stage with a mailbox. Vectors go through all stages
// in the order of their numbers; every stage adds its name to the text and changes the values. The source and the sink
// are threads of process 0, so its threads wait at three mailboxes at once.
#include <cstdio>
#include <functional>
#include <thread>

#include "mailbox.hpp"

namespace {

constexpr int kStagesOfProcess = 2, kItems = 300, kValues = 100, kOnTheWay = 16;

std::string name_of(int stage) { return "stage " + std::to_string(stage); }
double changed(double value, int stage) { return value * 3 + stage; }
double first_value(int item, int i) { return item * 7 + i; }

// Takes items out of its mailbox and posts them to the next: a message is used again when it has left.
void run_stage(int stage, int stages) {
  mail::Mailbox in = mail::Mailbox::create(name_of(stage));
  mail::Mailbox out = mail::Mailbox::clone(stage + 1 < stages ? name_of(stage + 1) : "sink");
  mail::Message message;
  for (int item = 0; item < kItems; ++item) {
    in.retrieve(message);
    const auto number = message.unpack<std::int32_t>();
    auto values = message.unpack<std::vector<double>>();
    const auto text = message.unpack<std::string>();
    for (double& value : values) value = changed(value, stage);
    message.clear();
    message.pack(number).pack(values).pack(text + "," + std::to_string(stage));
    out.post(message);
  }
}

// The semaphore keeps the number of items on the way small: the provider must not keep all of them.
void run_source(mail::Semaphore& may_send) {
  mail::Mailbox out = mail::Mailbox::clone(name_of(0));
  mail::Message message;
  for (std::int32_t item = 0; item < kItems; ++item) {
    may_send.p();
    std::vector<double> values;
    for (int i = 0; i < kValues; ++i) values.push_back(first_value(item, i));
    message.clear();
    message.pack(item).pack(values).pack(std::string("source"));
    out.post(message);
  }
}

// How many items are wrong: out of order, or not what the stages make of them one after the other.
int run_sink(mail::Mailbox& in, mail::Semaphore& may_send, int stages) {
  std::string wanted = "source";
  for (int stage = 0; stage < stages; ++stage) wanted += "," + std::to_string(stage);
  mail::Message message;
  int wrong = 0;
  for (int item = 0; item < kItems; ++item) {
    in.retrieve(message);
    may_send.v();
    bool right = message.unpack<std::int32_t>() == item;
    const auto values = message.unpack<std::vector<double>>();
    right = right && message.unpack<std::string>() == wanted && values.size() == kValues;
    for (int i = 0; right && i < kValues; ++i) {
      double value = first_value(item, i);
      for (int stage = 0; stage < stages; ++stage) value = changed(value, stage);
      right = values[static_cast<std::size_t>(i)] == value;
    }
    wrong += !right;
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  const mail::Session session(argc, argv,
                              "Vectors through stages in threads of all processes, by mailboxes.");
  const int stages = session.size() * kStagesOfProcess;
  int wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kStagesOfProcess; ++i)
    threads.emplace_back(run_stage, session.rank() * kStagesOfProcess + i, stages);
  if (session.rank() == 0) {
    mail::Semaphore may_send(kOnTheWay);
    mail::Mailbox sink = mail::Mailbox::create("sink");
    threads.emplace_back(run_source, std::ref(may_send));
    wrong = run_sink(sink, may_send, stages);
    if (wrong > 0) std::fprintf(stderr, "pipeline: %d of %d items are wrong\n", wrong, kItems);
    if (wrong == 0) std::printf("pipeline: %d items through %d stages\n", kItems, stages);
    threads.back().join();
    threads.pop_back();
  }
  for (std::thread& thread : threads) thread.join();
  return wrong > 0;
}
