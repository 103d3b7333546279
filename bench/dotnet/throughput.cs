// A program to be traced: the same work again and again, as often as it is asked to.
//
// usage: throughput THREADS EVERY
//        EVERY: a collection is induced after so many operations, besides those that allocating causes; 0 for none
// stdin:  a number of operations for each thread
// stdout: "ready"; then for each number its time and its processor time in nanoseconds, and the collections meanwhile
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.InteropServices;
using System.Threading;

static class Throughput
{
    // A player of a game, say: some numbers, a name, and what it carries.
    class Entity { public long Id; public string Name; public List<int> Items; public byte[] State; }

    struct Time { public long Seconds, Nanoseconds; }

    const int ProcessClock = 2;
    [DllImport("libc")] static extern int clock_gettime(int clock, out Time time);

    static long ProcessorNs()
    {
        Time time;
        clock_gettime(ProcessClock, out time);
        return time.Seconds * 1000000000 + time.Nanoseconds;
    }

    static void Main(string[] arguments)
    {
        int threads = int.Parse(arguments[0]);
        int every = int.Parse(arguments[1]);
        Console.WriteLine("ready");
        for (string line = Console.ReadLine(); line != null; line = Console.ReadLine())
        {
            int operations = int.Parse(line);
            // Every turn begins with the same heap.
            GC.Collect();
            int before = GC.CollectionCount(0);
            long startProcessor = ProcessorNs(), start = Stopwatch.GetTimestamp();
            var workers = new List<Thread>();
            for (int i = 0; i < threads; i++) workers.Add(new Thread(() => Work(operations, every)));
            workers.ForEach(worker => worker.Start());
            workers.ForEach(worker => worker.Join());
            long ticks = Stopwatch.GetTimestamp() - start;
            long processor = ProcessorNs() - startProcessor;
            long ns = ticks * (1000000000 / Stopwatch.Frequency);
            Console.WriteLine(ns + " " + processor + " " + (GC.CollectionCount(0) - before));
        }
    }

    static void Work(int operations, int every)
    {
        var world = new Dictionary<int, Entity>();
        for (int i = 0; i < operations; i++)
        {
            var entity = new Entity { Id = i, Name = i.ToString(), Items = new List<int>(), State = new byte[i % 512] };
            for (int item = 0; item < 8; item++) entity.Items.Add(item * i);
            // One in eight replaces one that has been there for long.
            if (i % 8 == 0) world[i % 160000] = entity;
            if (every > 0 && i % every == 0) GC.Collect(0);
        }
    }
}
