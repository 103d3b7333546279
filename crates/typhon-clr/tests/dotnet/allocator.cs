// A program for the live tests: allocates, collects, and says what its own runtime counted.
//
// usage: allocator THREADS ROUNDS
// stdin:  one line starts the work, another one ends the program
// stdout: "ready" with counts so far; in the end one "gc" line per collection it read about, and "done" with counts
//
// Compiled against a framework that lacks the newer parts of GC, which are therefore looked up by name.
using System;
using System.Collections.Generic;
using System.Reflection;
using System.Runtime;
using System.Text;
using System.Threading;

static class Allocator
{
    const BindingFlags Anything = BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic;

    static readonly Dictionary<long, string> MemoryInfos = new Dictionary<long, string>();
    static string lastBackgroundInfo;
    static readonly MethodInfo TotalPause = typeof(GC).GetMethod("GetTotalPauseDuration");
    static readonly MethodInfo MemoryInfo = FindMemoryInfo();
    static readonly MethodInfo AllocatePinned = FindAllocatePinned();

    // Small objects that stay alive, so that a background collection has something to do.
    class Node { public Node Next; public byte[] Payload; }

    static void Main(string[] arguments)
    {
        int threads = int.Parse(arguments[0]);
        int rounds = int.Parse(arguments[1]);
        Node graph = null;
        for (int i = 0; i < 200000; i++) graph = new Node { Next = graph, Payload = new byte[16] };
        // Everything that the report needs is compiled and allocated before the counting begins.
        Report("warm");
        ReadMemoryInfo();
        MemoryInfos.Clear();
        Report("ready");
        Console.ReadLine();
        var workers = new List<Thread>();
        for (int i = 0; i < threads; i++)
        {
            int number = i;
            workers.Add(new Thread(() => Work(number, rounds)));
        }
        workers.ForEach(worker => worker.Start());
        workers.ForEach(worker => worker.Join());
        // A blocking collection waits for a background one that is still running.
        GC.Collect(2, GCCollectionMode.Forced, true);
        ReadMemoryInfo();
        foreach (string line in MemoryInfos.Values) Console.WriteLine(line);
        Report("done");
        Console.ReadLine();
        GC.KeepAlive(graph);
    }

    static void Work(int number, int rounds)
    {
        var random = new Random(number);
        var survivors = new List<byte[]>();
        for (int round = 0; round < rounds; round++)
        {
            for (int i = 0; i < 300; i++)
            {
                var block = new byte[random.Next(64, 16384)];
                if (i % 25 == 0) survivors.Add(block);
            }
            for (int i = 0; i < 6; i++)
            {
                var large = new byte[random.Next(85000, 400000)];
                if (i == 0) survivors.Add(large);
            }
            if (AllocatePinned != null && round % 4 == 0)
                survivors.Add((byte[])AllocatePinned.Invoke(null, new object[] { random.Next(1000, 40000), true }));
            if (survivors.Count > 900) survivors.RemoveRange(0, 450);
            Induce(round);
            if (number == 0) ReadMemoryInfo();
        }
        GC.KeepAlive(survivors);
    }

    static void Induce(int round)
    {
        switch (round % 12)
        {
            case 1: GC.Collect(0); break;
            case 3: GC.Collect(1); break;
            case 5: GC.Collect(2, GCCollectionMode.Forced, true); break;
            case 7:
                // The blocking one waits for the one in the background, so that nothing is allocated beside it.
                GC.Collect(2, GCCollectionMode.Forced, false);
                GC.Collect(2, GCCollectionMode.Forced, true);
                break;
            case 9: GC.Collect(2, GCCollectionMode.Optimized); break;
            case 11:
                GCSettings.LargeObjectHeapCompactionMode = GCLargeObjectHeapCompactionMode.CompactOnce;
                GC.Collect(2, GCCollectionMode.Forced, true, true);
                break;
        }
    }

    static void Report(string label)
    {
        var line = new StringBuilder(label);
        for (int generation = 0; generation <= 2; generation++) line.Append(' ').Append(GC.CollectionCount(generation));
        long pause = TotalPause == null ? -1 : ((TimeSpan)TotalPause.Invoke(null, null)).Ticks * 100;
        line.Append(' ').Append(pause);
        Console.WriteLine(line.ToString());
    }

    // Keeps what the runtime tells about the last collection of each sort. A background collection's entry is filled in
    // by its own thread, possibly long after everybody else went on; so it counts only when two rounds found the same.
    static void ReadMemoryInfo()
    {
        if (MemoryInfo == null) return;
        const int Background = 3;
        for (int kind = 1; kind <= Background; kind++)
        {
            long index, promoted;
            string line = ReadMemoryInfo(kind, out index, out promoted);
            bool isSettled = kind != Background || line == lastBackgroundInfo;
            if (kind == Background) lastBackgroundInfo = line;
            if (promoted != 0 && isSettled) MemoryInfos[index] = line;
        }
    }

    // "gc INDEX GENERATION CONCURRENT PROMOTED COMMITTED SIZE0..SIZE4"
    static string ReadMemoryInfo(int kind, out long index, out long promoted)
    {
        object info = MemoryInfo.Invoke(null, new[] { Enum.ToObject(MemoryInfo.GetParameters()[0].ParameterType, kind) });
        object data = info.GetType().GetField("_data", Anything).GetValue(info);
        index = Convert.ToInt64(Field(data, "_index"));
        promoted = Convert.ToInt64(Field(data, "_promotedBytes"));
        var line = new StringBuilder("gc ").Append(index).Append(' ').Append(Field(data, "_generation"));
        line.Append(Convert.ToBoolean(Field(data, "_concurrent")) ? " 1 " : " 0 ");
        line.Append(promoted).Append(' ').Append(Field(data, "_totalCommittedBytes"));
        for (int generation = 0; generation < 5; generation++)
        {
            object sizes = Field(data, "_generationInfo" + generation);
            line.Append(' ').Append(sizes.GetType().GetProperty("SizeAfterBytes").GetValue(sizes, null));
        }
        return line.ToString();
    }

    static object Field(object data, string name)
    {
        return data.GetType().GetField(name, Anything).GetValue(data);
    }

    static MethodInfo FindMemoryInfo()
    {
        foreach (var method in typeof(GC).GetMethods())
            if (method.Name == "GetGCMemoryInfo" && method.GetParameters().Length == 1) return method;
        return null;
    }

    static MethodInfo FindAllocatePinned()
    {
        foreach (var method in typeof(GC).GetMethods())
            if (method.Name == "AllocateArray") return method.MakeGenericMethod(typeof(byte));
        return null;
    }
}
