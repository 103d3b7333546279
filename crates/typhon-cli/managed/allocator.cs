// What `typhon demo --gc` runs beside the colony: a program that always has something for its collector to do.
//
// It begins once somebody listens to its collections, so that the first one is seen, and ends when its standard input is
// closed. That happens however the demo ends.
//
// `demo-allocator.exe` beside this file is what `mcs -optimize` makes of it. A test of the command line compiles it again and
// compares; with TYPHON_BLESS=1 it writes the result there.
using System;
using System.Collections.Generic;
using System.Diagnostics.Tracing;
using System.IO;
using System.Threading;

static class Allocator
{
    const string RuntimeProvider = "Microsoft-Windows-DotNETRuntime";
    const EventKeywords Collections = (EventKeywords)1;
    const int FrameMilliseconds = 16;
    // Roughly 20 MB a second, of which a tenth lives for some seconds.
    const int BlocksPerFrame = 160;
    const int Survivors = 2000;

    static void Main()
    {
        new Thread(EndWithInput) { IsBackground = true }.Start();
        while (!SomebodyListens()) Thread.Sleep(FrameMilliseconds);
        var random = new Random(1);
        var survivors = new Queue<byte[]>();
        for (int frame = 0; ; frame++)
        {
            Work(random, survivors);
            if (frame % 60 == 0) survivors.Enqueue(new byte[random.Next(85000, 400000)]);
            if (frame % 180 == 0) GC.Collect(2, GCCollectionMode.Forced, false);
            while (survivors.Count > Survivors) survivors.Dequeue();
            Thread.Sleep(FrameMilliseconds);
        }
    }

    static void Work(Random random, Queue<byte[]> survivors)
    {
        for (int i = 0; i < BlocksPerFrame; i++)
        {
            var block = new byte[random.Next(64, 4096)];
            if (i % 10 == 0) survivors.Enqueue(block);
        }
    }

    // The runtime's own provider is on as soon as a session asks for its events.
    static bool SomebodyListens()
    {
        foreach (EventSource source in EventSource.GetSources())
            if (source.Name == RuntimeProvider && source.IsEnabled(EventLevel.Informational, Collections)) return true;
        return false;
    }

    static void EndWithInput()
    {
        Stream input = Console.OpenStandardInput();
        var buffer = new byte[16];
        while (input.Read(buffer, 0, buffer.Length) > 0) { }
        Environment.Exit(0);
    }
}
